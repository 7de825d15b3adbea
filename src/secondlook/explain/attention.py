"""The attention of the network as it really runs, with STRM and without."""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.errors import MissingExtra

try:
    import torch
except ImportError as error:
    raise MissingExtra("torch", "looking at attention") from error

from secondlook.encode.features import collate
from secondlook.model.families import family
from secondlook.model.joint import Joint
from secondlook.model.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from secondlook.encode.features import Features
    from secondlook.model.network import CrossEncoder


def attend(
    network: CrossEncoder, pair: Features, *, strm: bool
) -> tuple[float, NDArray[np.float32]]:
    """The score, and the attention [layers, heads, from tokens, to tokens], with or without STRM.

    For that the network computes attention otherwise, in every thread: nothing else may run it
    meanwhile, so hold `TorchBackend.network_lock`.
    """
    encoder: Any = network.encoder
    layers = family(encoder, "explaining attention").layers
    with _eager(encoder), _seen(layers) as seen:
        score = _run(network, pair, strm=strm)
    return score, torch.stack(seen).float().cpu().numpy()


def parts_of(network: CrossEncoder, pair: Features) -> dict[str, float]:
    """What the score is the sum of: in the warm form, the bi-encoder's cosine and the head.

    Other forms have one part only, and that is not named.
    """
    if not isinstance(network, Warm):
        return {}
    head_alone = copy(network)  # shares all weights but the one that is shut off
    shut = torch.nn.Parameter(torch.zeros_like(network.alpha), requires_grad=False)
    head_alone._parameters = {**network._parameters, "alpha": shut}
    head = _run(head_alone, pair, strm=network.strm)
    whole = _run(network, pair, strm=network.strm)
    return {"similarity of the texts": whole - head, "what the head read": head}


def _run(network: CrossEncoder, pair: Features, *, strm: bool) -> float:
    device = next(network.parameters()).device
    arrays = collate([pair], network.pad_id)
    batch = {name: torch.from_numpy(rows).to(device) for name, rows in arrays.items()}
    run = Joint(network.classifier, strm=strm) if isinstance(network, Joint) else network
    names = [name for name in run.inputs if name != "words"] + (["words"] if strm else [])
    with torch.inference_mode():
        return float(run(**{name: batch[name] for name in names}))


@contextmanager
def _eager(encoder: Any) -> Iterator[None]:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
    """The fast kernels give no attention out; the plain ones compute the same and do."""
    before = encoder.config._attn_implementation
    encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        encoder.set_attn_implementation(before)


@contextmanager
def _seen(layers: nn.ModuleList) -> Iterator[list[Tensor]]:
    """The attention of each layer that runs meanwhile, [heads, from, to], lowest first.

    The families name their modules differently, but in each one gives out [batch, heads, from, to],
    beside the states or, in MPNet's dropout, alone; and nothing else has four dimensions.
    """
    found: dict[int, Tensor] = {}
    seen: list[Tensor] = []
    hooks = []

    def watch(layer: int) -> Any:  # noqa: ANN401 - torch's type of hooks
        def hook(_module: nn.Module, _inputs: object, output: object) -> None:
            weights = output[1] if isinstance(output, tuple) and len(output) > 1 else output
            if isinstance(weights, torch.Tensor) and weights.ndim == 4:
                found[layer] = weights[0]

        return hook

    for layer, block in enumerate(layers):
        hooks += [module.register_forward_hook(watch(layer)) for module in block.modules()]
    try:
        yield seen
        seen += [found[layer] for layer in sorted(found)]
    finally:
        for one in hooks:
            one.remove()


def between_words(
    attention: NDArray[np.float32],  # [from tokens, to tokens]
    source: list[NDArray[np.intp]],
    target: list[NDArray[np.intp]],
) -> NDArray[np.float32]:
    """How a word's pieces look, on average, at all pieces of another: [from words, to words]."""
    columns = [attention[:, tokens].sum(axis=1) for tokens in target]
    to_words = np.stack(columns, axis=1) if columns else np.empty((len(attention), 0), np.float32)
    rows = [to_words[tokens].mean(axis=0) for tokens in source]
    return np.stack(rows) if rows else np.empty((0, len(target)), np.float32)
