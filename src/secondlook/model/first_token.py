"""The last layer for the first token alone, where nothing else is read of it.

A joint ranker of BERT's kind takes its score from the first token. Below the last layer all tokens
are needed; in it, the others give keys and values only: five sixths of its products are left out.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local
from types import MethodType
from typing import TYPE_CHECKING, Any

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import eager_attention_forward

from secondlook.model.families import reads_first_token
from secondlook.model.joint import Joint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn


_asked = local()
"""Has the layers of which this thread wants the first token alone."""


@contextmanager
def first_token_only(network: nn.Module) -> Iterator[None]:
    """Within, the encoder of a ranker that reads its first token alone gives this thread no other.

    Other threads, who may look at all tokens meanwhile, and other networks are left as they are.
    """
    classifier: Any = network.classifier if isinstance(network, Joint) else network
    if not reads_first_token(classifier):
        yield
        return
    layer = classifier.base_model.encoder.layer[-1]
    layer.forward = MethodType(_forward, layer)  # stays, and does as before where nobody asks
    before = _layers()
    _asked.layers = before | {layer}
    try:
        yield
    finally:
        _asked.layers = before


def _layers() -> frozenset[nn.Module]:
    layers: frozenset[nn.Module] = getattr(_asked, "layers", frozenset())
    return layers


def _forward(
    layer: Any,  # noqa: ANN401 - BertLayer, or a copy of it under another family's name
    hidden_states: Tensor,  # [batch, tokens, hidden]
    attention_mask: Tensor | None = None,  # [batch, 1, 1 or tokens, tokens]
    *others: object,
    **named: object,
) -> Tensor:
    """As the layer's own forward, of the first token where that is asked: [batch, 1, hidden]."""
    made: Tensor
    if layer not in _layers():
        made = type(layer).forward(layer, hidden_states, attention_mask, *others, **named)
        return made
    attention, first = layer.attention.self, hidden_states[:, :1]
    kind = attention.config._attn_implementation
    attend: Any = eager_attention_forward if kind == "eager" else ALL_ATTENTION_FUNCTIONS[kind]
    mixed, _weights = attend(
        attention,
        *(
            projection(states).unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)
            for projection, states in (
                (attention.query, first),
                (attention.key, hidden_states),
                (attention.value, hidden_states),
            )
        ),
        None if attention_mask is None else attention_mask[:, :, :1],
        dropout=attention.dropout.p if attention.training else 0.0,
        scaling=attention.scaling,
    )
    seen = layer.attention.output(mixed.flatten(2), first)
    made = layer.feed_forward_chunk(seen)
    return made
