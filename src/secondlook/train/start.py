"""What a training starts from: a bi-encoder, a cross-encoder, or a ranker that was made here."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from secondlook.model.checkpoint import CARD, locate, max_length, open_checkpoint, read_config
from secondlook.model.network import load_model, save_model
from secondlook.score.warm import make_warm

if TYPE_CHECKING:
    from pathlib import Path

    from secondlook.model.settings import RankerSettings

Kind = Literal["bi-encoder", "cross-encoder", "ranker"]
_SCORING_HEADS = ("ForSequenceClassification", "ForCausalLM")
"""How the names of architectures end that give a score to a pair of texts."""
MOST_TOKENS = 256
"""Of a pair, in training; more would leave too few steps in the minutes that users have."""


def kind_of(base: str | Path) -> Kind:
    """What kind of model it is, by the files beside its weights; a hub id is fetched first."""
    folder = locate(base)
    if (folder / CARD).is_file():
        return "ranker"
    config = read_config(folder)
    if _saved_as(folder) == "CrossEncoder":
        return "cross-encoder"
    architectures = config.get("architectures") or []
    scores = any(name.endswith(_SCORING_HEADS) for name in architectures)
    return "cross-encoder" if scores else "bi-encoder"


def _saved_as(folder: Path) -> str:
    """What sentence-transformers saved it as; a damaged file is refused where it is read."""
    with suppress(OSError, ValueError):
        saved = json.loads((folder / "config_sentence_transformers.json").read_text("utf-8"))
        return str(saved.get("model_type", ""))
    return ""


def make_start(base: str | Path, folder: Path) -> RankerSettings:
    """Write the ranker that `base` is without training, and give its settings.

    A bi-encoder becomes a ranker of the warm form. Of a ranker, the fusion and the calibration are
    left out: both are of the data it was made for.
    """
    if kind_of(base) == "bi-encoder":
        return make_warm(base, folder)
    model = load_model(base)
    settings = model.settings.model_copy(update={"fusion": None, "calibration": None})
    save_model(replace(model, settings=settings), folder)
    return settings


def first_settings(base: str | Path) -> dict[str, Any]:
    """How a recipe begins that trains this base: its `base`, `encode` and first `phases`.

    A ranker goes on as it encodes already; other bases read at most `MOST_TOKENS` of a pair.
    """
    kind = kind_of(base)
    started: dict[str, Any] = {"base": str(base), "phases": ()}
    if kind == "bi-encoder":
        started["phases"] = ({"phase": "warm"},)
    if kind != "ranker":
        started["encode"] = {"max_length": min(_longest(base, kind), MOST_TOKENS)}
    return started


def _longest(base: str | Path, kind: Kind) -> int:
    if kind == "bi-encoder":
        folder = locate(base)
        return max_length(folder, read_config(folder))
    return open_checkpoint(base).settings.encode.max_length
