"""Relevance scores of a ranker: probabilities by judgments, or a scale without them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from secondlook.errors import WrongArgument
from secondlook.progress import as_progress

if TYPE_CHECKING:
    from secondlook.model.settings import FittedOn, RankerSettings
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.score.calibration import Calibration, Fitted

    Source = str | Path


@dataclass(frozen=True, slots=True)
class CalibrateResult:
    """A calibration that was stored, and what it was fitted on."""

    ranker: Path
    calibration: Calibration
    error_before: float | None = None
    """Expected calibration error by what the ranker had before; None without judgments."""
    error_after: float | None = None
    """The same by this calibration, cross-validated over queries."""

    @property
    def fitted_on(self) -> FittedOn:
        """The pairs."""
        assert self.calibration.fitted_on is not None
        return self.calibration.fitted_on

    def summary(self) -> str:
        """What was fitted, and how well."""
        from secondlook.score.default_scale import scale_summary

        fitted_on = self.fitted_on
        if self.error_after is None:
            return f"{self.ranker}: {scale_summary(fitted_on)}"
        pairs = f"{fitted_on.pairs:,} pairs ({fitted_on.relevant:,} relevant)"
        lines = [f"{self.ranker}: {self.calibration.kind} scaling from {pairs}"]
        if fitted_on.assumed:
            lines.append(f"assumed: {fitted_on.assumed}")
        lines.append(
            f"expected calibration error {self.error_before:.3f} before, {self.error_after:.3f} "
            "after"
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        recorded = self.fitted_on.model_dump(exclude={"queries"})
        if self.error_after is None:
            return recorded
        return recorded | {"ece_before": self.error_before, "ece_after": self.error_after}


def calibrate(
    ranker: Source,
    *,
    run: Source | None = None,
    qrels: Source | None = None,
    corpus: Source | None = None,
    queries: Source | None = None,
    kind: Literal["platt", "isotonic"] | None = None,
    relevant_from: int | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> CalibrateResult:
    """Fit relevance scores and store the calibration in the ranker's folder.

    With `run` (of raw scores) and `qrels`, scores become probabilities of relevance. Without
    `run`, they are fitted to a scale: of texts of `corpus` (with its `queries` and `qrels`, where
    there are any), or of the built-in reference pairs. `kind` is that of the probabilities, by
    default "platt"; in judgments grades are relevant from `relevant_from` on, by default 1.
    """
    from secondlook.model.checkpoint import changing_settings, write_settings

    folder, reported = Path(ranker), as_progress(progress)
    if run is None and (queries or qrels) and not (corpus and queries):
        raise WrongArgument("`qrels` needs a `run`, or a `corpus` and `queries`")
    if run is not None and (qrels is None or corpus is not None):
        raise WrongArgument("a `run` needs `qrels`, and excludes a `corpus`")
    if run is not None and queries is not None:
        raise WrongArgument("`queries` are of a `corpus`: a `run` says which queries are its own")
    if run is None and kind is not None:
        raise WrongArgument("`kind` is that of probabilities: it needs a `run` and `qrels`")
    if qrels is None and relevant_from is not None:
        raise WrongArgument("`relevant_from` is a grade of judgments: it needs `qrels`")
    relevant_from = 1 if relevant_from is None else relevant_from
    with changing_settings(folder) as settings:
        if run is None or qrels is None:
            return _by_texts(folder, corpus, queries, qrels, relevant_from, reported)
        with reported.busy("reading run and judgments"):
            fitted = _by_judgments(settings, run, qrels, kind or "platt", relevant_from)
        write_settings(folder, settings.model_copy(update={"calibration": fitted.calibration}))
    return CalibrateResult(folder, fitted.calibration, fitted.error_before, fitted.error_after)


def _by_judgments(
    settings: RankerSettings,
    run: Source,
    qrels: Source,
    kind: Literal["platt", "isotonic"],
    relevant_from: int,
) -> Fitted:
    from secondlook.data import read_qrels, read_run
    from secondlook.score.calibration import fit_to_judgments, raw_scores_of
    from secondlook.score.raw import tag_of_scores

    rankings = raw_scores_of(settings, read_run(str(run)), tag_of_scores(str(run)))
    judgments = read_qrels(str(qrels))
    return fit_to_judgments(settings, rankings, judgments, kind=kind, relevant_from=relevant_from)


def _by_texts(
    ranker: Path,
    corpus: Source | None,
    queries: Source | None,
    qrels: Source | None,
    relevant_from: int,
    progress: Progress,
) -> CalibrateResult:
    from secondlook.score.default_scale import store_scale
    from secondlook.score.ranker import Ranker
    from secondlook.workflows.documents import scale_pairs

    scorer = Ranker.load(ranker)
    pairs = scale_pairs(corpus, queries, qrels, relevant_from, progress=progress)
    return CalibrateResult(ranker, store_scale(ranker, scorer, pairs))
