"""Fusion of first-stage and re-ranking scores: tuned by judgments, and stored with the ranker."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.encode.settings import WindowSettings
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.rank.fusion import Scale
    from secondlook.score.fusion_choice import TunedFusion, Tuning

_FEW_QUERIES = 40
"""With fewer, a tuned weight has not been seen to gain on other queries (decision 0256)."""


@dataclass(frozen=True, slots=True)
class FusionResult:
    """The fusion that suits a ranker, and whether it was stored."""

    ranker: Path
    measure: str
    tuned: TunedFusion
    stored: bool
    calibration_dropped: bool
    """Whether a calibration was removed, which was for another pooling."""

    @property
    def weight(self) -> float:
        """Of the first-stage score; 0 where the ranker's is used alone."""
        return self.tuned.way.weight

    @property
    def scale(self) -> str | None:
        """How scores are normalised: min-max, z, ranks or raw; None without a fusion."""
        fusion = self.tuned.way.fusion
        return fusion.scale if fusion else None

    @property
    def pooling(self) -> str:
        """How windows are pooled; `whole` where there are none."""
        from secondlook.score.fusion_choice import pooling_name

        return pooling_name(self.tuned.way.pooling)

    @property
    def warnings(self) -> list[str]:
        """Why the fusion may not be what other queries need."""
        tuned = self.tuned
        said = []
        if tuned.queries < _FEW_QUERIES:
            said.append(
                f"only {tuned.queries:,} judged queries, where {_FEW_QUERIES} or more are needed: "
                "others may need another weight"
            )
        inputs = {"the first stage alone": tuned.first, "the re-ranker alone": tuned.ranker}
        better = max(inputs, key=lambda name: inputs[name])
        if self.scale is not None and self.weight < 1 and tuned.fused < inputs[better]:
            said.append(
                f"cross-validated, {better} is better by {inputs[better] - tuned.fused:.4f}: "
                "compare on other queries before you rely on this fusion"
            )
        return said

    def summary(self) -> str:
        """The measure by each input and by their fusion, and what was chosen."""
        tuned = self.tuned
        gain = tuned.fused - max(tuned.first, tuned.ranker)
        lines = [
            f"{self.measure} over {tuned.queries:,} queries, cross-validated",
            f"  first stage      {tuned.first:.4f}",
            f"  re-ranker        {tuned.ranker:.4f}",
            f"  fused            {tuned.fused:.4f}  ({gain:+.4f}, p = {tuned.p:.3f})",
        ]
        for name, own in tuned.poolings.items():
            lines.append(f"    {name:<34} re-ranker {own['ranker']:.4f}  fused {own['fused']:.4f}")
        lines += [f"warning: {warning}" for warning in self.warnings]
        chosen = {
            0.0: "the re-ranker alone",
            1.0: "the first stage alone; the re-ranker's scores have no weight",
        }.get(self.weight, f"{self.weight:.2f} first-stage weight, scale {self.scale}")
        pooled = f", windows pooled by {self.pooling}" if tuned.way.pooling else ""
        lines.append(f"{self.ranker}: {chosen}{pooled}{'' if self.stored else ' (not stored)'}")
        if tuned.left_out:
            lines.append(
                "left out, not in the run of raw scores (never searched, or nothing was found: a "
                f"run does not tell): {tuned.left_out:,} judged queries"
            )
        if self.calibration_dropped:
            lines.append(
                "its calibration was for another pooling; scores use the scale of the reference "
                "pairs until it is calibrated again"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        tuned = self.tuned
        figures: dict[str, Any] = {
            name: getattr(tuned, name)
            for name in ("queries", "left_out", "first", "ranker", "fused", "p")
        }
        if tuned.poolings:
            figures["poolings"] = {name: dict(own) for name, own in tuned.poolings.items()}
        return figures | {
            "measure": self.measure,
            "stored": self.stored,
            "weight": self.weight,
            "scale": self.scale,
            "pooling": self.pooling,
            "warnings": self.warnings,
        }


def tune_fusion(
    ranker: str | Path,
    *,
    first: str | Path,
    raw: str | Path,
    qrels: str | Path,
    measure: str = "nDCG@10",
    folds: int = 5,
    seed: int = 0,
    curve: str | Path | None = None,
    scales: Sequence[str] | None = None,
    dry_run: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> FusionResult:
    """Tune weight, scale and pooling by cross-validation, and store them with the ranker.

    `first` is the first-stage run, `raw` the same with the ranker's raw scores; judged queries that
    it does not have are left out. The weight is
    the mean of the best weights over bootstrap samples of the queries; if the first stage alone is
    better than that, it is used alone. With `curve`, a picture of the measure over the weight is
    written; with `dry_run`, the ranker is not modified. `scales` are the normalisations to try
    (min-max, z, ranks, raw); by default min-max and z.
    """
    from secondlook.data import read_qrels, read_run
    from secondlook.evaluate.curve import refuse_picture
    from secondlook.model.checkpoint import changing_settings, open_checkpoint, write_settings
    from secondlook.score import fusion_choice
    from secondlook.score.default_scale import reference_pairs, store_scale
    from secondlook.score.ranker import Ranker
    from secondlook.score.raw import require_raw_scores, tag_of_scores

    if curve is not None:
        refuse_picture(Path(curve))
    folder = Path(ranker)
    looking = nullcontext(open_checkpoint(folder).settings)
    with looking if dry_run else changing_settings(folder) as settings:
        require_raw_scores(settings, tag_of_scores(str(raw)), "a fusion is tuned by")
        windows = settings.encode.windows
        with as_progress(progress).busy("trying fusions"):
            looks = fusion_choice.read_looks(
                read_run(str(first)), read_run(str(raw)), windows=windows is not None
            )
            judgments = read_qrels(str(qrels))
            ways = fusion_choice.ways(windows, fusion_choice.read_scales(scales))
            tried = fusion_choice.tune(looks, judgments, ways, measure, folds=folds, seed=seed)
            tuned = tried.best()
        changed = fusion_choice.settings_with(settings, tuned.way)
        dropped = settings.calibration is not None and changed.calibration is None
        if not dry_run:
            write_settings(folder, changed)
            if changed.calibration is None:
                store_scale(folder, Ranker.load(folder), reference_pairs())
    if curve is not None:
        _draw(Path(curve), tried, tuned, measure)
    return FusionResult(folder, measure, tuned, not dry_run, dropped and not dry_run)


def set_fusion(
    ranker: str | Path,
    weight: float,
    scale: Scale = "min-max",
    *,
    windows: WindowSettings | None = None,
) -> None:
    """Store a fusion that is known, instead of a tuned one; with `windows` also how to read.

    final score = weight · first stage + (1 - weight) · ranker, both brought to `scale`. Another
    way to read documents makes a calibration void, which is removed then.
    """
    from secondlook.data.lock import locked
    from secondlook.model.checkpoint import open_checkpoint, write_settings
    from secondlook.rank.fusion import Fusion
    from secondlook.score.fusion_choice import Way, settings_with

    folder = Path(ranker)
    open_checkpoint(folder)  # a folder that holds no ranker is not locked
    with locked(folder):
        settings = open_checkpoint(folder).settings
        way = Way(windows or settings.encode.windows, Fusion(weight, scale))
        write_settings(folder, settings_with(settings, way))


def windows_of_words(
    length: int, stride: int | None = None, top_weights: Sequence[float] = ()
) -> WindowSettings:
    """Windows of so many words, half of them shared with the next unless `stride` says otherwise.

    A document's score is the best window's, or the sum of its best ones with `top_weights`.
    """
    from secondlook.encode.settings import WindowSettings

    return WindowSettings(
        length=length,
        stride=stride or (length + 1) // 2,
        pooling="top" if top_weights else "max",
        weights=tuple(top_weights),
    )


def clear_fusion(ranker: str | Path) -> None:
    """Remove a stored fusion, so that the ranker's scores are used alone."""
    from secondlook.model.checkpoint import changing_settings, write_settings

    folder = Path(ranker)
    with changing_settings(folder) as settings:
        write_settings(folder, settings.model_copy(update={"fusion": None}))


def _draw(path: Path, tried: Tuning, tuned: TunedFusion, measure: str) -> None:
    """The mean over all queries for each weight, one line for each scale."""
    from secondlook.evaluate.curve import plotted

    with plotted(path, "weight of the first stage", measure) as axes:
        for scale, points in tried.curves(tuned.way.pooling).items():
            axes.plot(*zip(*points, strict=True), marker=".", label=scale)
