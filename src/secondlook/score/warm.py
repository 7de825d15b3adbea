"""A ranker from a bi-encoder: in memory, or on disk with a scale for its scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from secondlook.errors import MissingExtra

try:
    from secondlook.model.network import new_warm, save_model
    from secondlook.score.torch_backend import TorchBackend
except ImportError as error:
    raise MissingExtra("torch", "making a warm ranker") from error

from secondlook.model.checkpoint import layer_count, locate, read_config
from secondlook.score.default_scale import fit_scale, reference_pairs
from secondlook.score.ranker import Ranker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secondlook.model.settings import RankerSettings
    from secondlook.score.default_scale import ScalePairs


def make_warm(
    base: str | Path,
    output: str | Path,
    *,
    separate_layers: int | Literal["all"] = 0,
    encode: Mapping[str, Any] | None = None,
    pairs: ScalePairs | None = None,
) -> RankerSettings:
    """Make a ranker from a bi-encoder, without training, and write it to `output`.

    With "all" layers separate, its scores can be made from stored document vectors. They get a
    scale from `pairs`, or else from the built-in reference pairs.
    """
    layers = layer_count(read_config(locate(base))) if separate_layers == "all" else separate_layers
    model = new_warm(base, separate_layers=layers, encode=encode)
    scorer = Ranker(model.settings, model.tokenizer, TorchBackend(model.network))
    scale = fit_scale(scorer, pairs or reference_pairs())
    settings = model.settings.model_copy(update={"calibration": scale})
    save_model(replace(model, network=model.network.to("cpu"), settings=settings), Path(output))
    return settings


def from_biencoder(source: str | Path, encode: Mapping[str, Any], device: str | None) -> Ranker:
    """The same in memory; its scale is fitted when it is needed."""
    model = new_warm(source, encode=encode)
    return Ranker(model.settings, model.tokenizer, TorchBackend(model.network, device=device))
