"""The model a phase holds, as a ranker that scores."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from secondlook.encode.type_classifier import TypeClassifier
from secondlook.model.checkpoint import TYPES
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import TorchBackend, fast_bf16
from secondlook.train.settings import RankingPhase

if TYPE_CHECKING:
    import torch

    from secondlook.model.network import Model
    from secondlook.train.recipe import Recipe

Precision = Literal["fp32", "bf16"]


def ranker_of(
    model: Model, types: TypeClassifier | None, device: torch.device, precision: Precision
) -> Ranker:
    """It scores with the weights as they are now, and leaves the network in its eval mode."""
    backend = TorchBackend(model.network, device=str(device), precision=precision)
    return Ranker(model.settings, model.tokenizer, backend, types)


def types_of(model: Model, folder: Path) -> TypeClassifier | None:
    """The model's classifier of query types, where it has one, by way of a file in `folder`."""
    if TYPES not in model.files:
        return None
    with TemporaryDirectory(dir=folder) as own:  # other processes do the same at the same moment
        path = Path(own) / TYPES
        path.write_bytes(model.files[TYPES])
        return TypeClassifier.load(path)


def precision_of(wanted: Literal["auto", "fp32", "bf16"], device: torch.device) -> Precision:
    """What `auto` means on this hardware."""
    if wanted == "auto":
        return "bf16" if fast_bf16(device) else "fp32"
    return wanted


def precision_of_ranking(recipe: Recipe, device: torch.device) -> Precision:
    """What the recipe's first ranking phase trains in on this hardware; fp32 without one."""
    ranked = (phase for phase in recipe.phases if isinstance(phase, RankingPhase))
    return next((precision_of(phase.precision, device) for phase in ranked), "fp32")
