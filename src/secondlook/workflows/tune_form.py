"""Whether a trained re-ranker needs its cross-attention: without it, documents have vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from secondlook.workflows.tune_stages import Tuning

SEPARATE = "separate"
_NO_WORSE = 0.001
"""What nDCG@10 on validation queries may fall by: the last digit that is told of it."""


def has_cross_attention(ranker: Path) -> bool:
    """Whether it is made from a bi-encoder, and some of its layers see both texts."""
    from secondlook.model.checkpoint import layer_count, open_checkpoint

    checkpoint = open_checkpoint(ranker)
    warm = checkpoint.settings.warm
    return warm is not None and warm.separate_layers < layer_count(checkpoint.config)


def try_separate(tuning: Tuning, better: str, figures: Mapping[str, float]) -> dict[str, float]:
    """The figures, and that of the better ranker with all layers separate, where it was trained."""
    if better != "trained" or not has_cross_attention(tuning.ranker(better)):
        return dict(figures)
    make_separate(tuning.ranker(better), tuning.ranker(SEPARATE), figures[better])
    tuning.export(tuning.ranker(SEPARATE))
    return {**figures, SEPARATE: tuning.validated(SEPARATE)}


def cheapest(figures: Mapping[str, float]) -> str:
    """The best ranker, or its separate form where that is no worse."""
    best = max(figures, key=figures.__getitem__)
    no_worse = figures.get(SEPARATE, float("-inf")) >= figures[best] - _NO_WORSE
    return SEPARATE if no_worse else best


def make_separate(ranker: Path, target: Path, figure: float) -> None:
    """The same weights with all layers separate; the lineage says so, and what it was before."""
    from shutil import copytree, ignore_patterns

    from secondlook.model.checkpoint import (
        layer_count,
        open_checkpoint,
        replacing,
        write_settings,
    )
    from secondlook.model.settings import Phase

    if target.exists():
        return
    checkpoint = open_checkpoint(ranker)
    settings = checkpoint.settings
    assert settings.warm is not None
    warm = settings.warm.model_copy(update={"separate_layers": layer_count(checkpoint.config)})
    step = Phase(
        name="cross-attention left out",
        metrics={"validation nDCG@10 with it": figure},
        labels=settings.lineage.phases[-1].labels if settings.lineage.phases else "",
    )
    changed = {"warm": warm, "lineage": settings.lineage.then(step)}
    with replacing(target) as half:
        copytree(ranker, half, dirs_exist_ok=True, ignore=ignore_patterns("onnx", "openvino"))
        write_settings(half, settings.model_copy(update=changed))
