"""Computes a joint ranker's last layer for the first token only.

BERT's classifier reads only the first token above the last layer. The other tokens are needed there
only as keys and values, so five sixths of the layer's matrix products can be skipped.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local
from types import MethodType
from typing import TYPE_CHECKING, Any

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import eager_attention_forward

from secondlook.model.joint import Joint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn


_active = local()
"""`layers`: the layers that the current thread computes for the first token only."""


@contextmanager
def first_token_only(network: nn.Module) -> Iterator[None]:
    """Skip the last layer's other tokens in the current thread; scores and gradients are the same.

    Has no effect on networks whose score depends on more than the first token.
    """
    layer = network.first_token_layer if isinstance(network, Joint) else None
    if layer is None:
        yield
        return
    layer.forward = MethodType(_forward, layer)  # stays: outside it calls the layer's own forward
    before = _layers()
    _active.layers = before | {layer}
    try:
        yield
    finally:
        _active.layers = before


def _layers() -> frozenset[nn.Module]:
    layers: frozenset[nn.Module] = getattr(_active, "layers", frozenset())
    return layers


def _forward(
    layer: Any,  # noqa: ANN401 - BertLayer, or a copy of it under another family's name
    hidden_states: Tensor,  # [batch, tokens, hidden]
    attention_mask: Tensor | None = None,  # [batch, 1, 1 or tokens, tokens]
    *others: object,
    **named: object,
) -> Tensor:
    """The layer's output for the first token, [batch, 1, hidden]; outside the context, for all."""
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
