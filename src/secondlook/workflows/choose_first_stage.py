"""Which first stage suits an index: BM25, vectors, or both and how; by judgments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.rank.fusion import Scale
    from secondlook.retrieve.hybrid import FirstStageChoice
    from secondlook.types import Qrels, Ranking

_SCALES: tuple[Scale, ...] = ("min-max", "z", "ranks")
_FEEDBACK = 0.3
"""The middle of the good region, found on TREC DL 2021 (docs/results/training.md)."""


@dataclass(frozen=True, slots=True)
class FirstStageResult:
    """The first stage that suits an index, and whether it was stored."""

    index: Path
    choice: FirstStageChoice
    queries: int
    p: float
    """Of the difference between the chosen way, cross-validated and without feedback, and BM25."""
    stored: bool
    left_out: int = 0
    """Judged queries that were not among those to search."""

    def summary(self) -> str:
        """The measure by each first stage, and what was chosen."""
        choice = self.choice
        lines = [f"{choice.measure} over {self.queries:,} queries"]
        lines += [f"  {name:<28} {value:.4f}" for name, value in choice.figures.items()]
        chosen: str = choice.by
        if choice.by == "hybrid":
            chosen += f", BM25 weight {choice.weight:.2f}, scale {choice.scale}"
        if choice.feedback:
            chosen += f", feedback {choice.feedback:g}"
        kept = "" if self.stored else " (not stored)"
        tested = f"p = {self.p:.3f} against BM25{', without feedback' if choice.feedback else ''}"
        lines.append(f"{self.index}: {chosen} ({tested}){kept}")
        if self.left_out:
            lines.append(f"left out, not among the queries given: {self.left_out:,} judged queries")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        told = {"index": str(self.index), "queries": self.queries, "p": self.p}
        told |= {"p_of": "without feedback" if self.choice.feedback else "as chosen"}
        told |= {"left_out": self.left_out}
        return told | {"stored": self.stored} | self.choice.model_dump(mode="json")


def choose_first_stage(
    index: str | Path,
    queries: str | Path,
    qrels: str | Path,
    *,
    k: int = 100,
    measure: str = "nDCG@10",
    folds: int = 5,
    seed: int = 0,
    feedback: bool = False,
    dry_run: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> FirstStageResult:
    """Find out by judgments how an index with vectors is best searched, and store it there.

    BM25 alone, vectors alone, and their fusion with many weights and scales are tried on the top
    `k` of each. Anything but BM25 alone must be better by more than two standard errors. With
    `feedback`, what was chosen is tried with the query's vector moved towards its nearest
    documents', too, and that is kept if it is better by as much. Searches of the index go by the
    result from then on; with `dry_run` nothing is stored.
    """
    from secondlook.data import read_qrels, read_queries
    from secondlook.evaluate.cross_validation import judged_among
    from secondlook.retrieve.hybrid import HybridIndex, write_choice
    from secondlook.workflows.open_index import open_index
    from secondlook.workflows.retrieve import rankings_of

    reported, folder = as_progress(progress), Path(index)
    judged = read_qrels(str(qrels))
    wanted = [query for query in read_queries(str(queries)) if query.id in judged]
    searched = judged_among(judged, {query.id for query in wanted})
    by_vectors = open_index(folder, by="vectors").engine
    assert isinstance(by_vectors, HybridIndex)
    # Whatever an earlier tuning stored: the comparison begins without feedback.
    by_vectors.choice = by_vectors.choice.model_copy(update={"feedback": 0.0})
    total = len(wanted)
    by_words = rankings_of(by_vectors.engine, wanted, k)
    words = list(reported.track(by_words, "retrieving by BM25", "queries", total=total))
    nearest = rankings_of(by_vectors, wanted, k)
    near = list(reported.track(nearest, "retrieving by vectors", "queries", total=total))
    with reported.busy("trying fusions"):
        choice, p = compare_first_stages(words, near, searched, k, measure, folds=folds, seed=seed)
    if feedback and choice.by != "bm25":
        by_vectors.choice = by_vectors.choice.model_copy(update={"feedback": _FEEDBACK})
        nearest = rankings_of(by_vectors, wanted, k)
        moved = list(reported.track(nearest, "trying feedback", "queries", total=total))
        choice = compare_feedback(words, near, moved, searched, k, choice)
    if not dry_run:
        write_choice(folder, choice)
    left_out = len(judged) - len(searched)
    return FirstStageResult(folder, choice, len(searched), p, not dry_run, left_out)


def compare_first_stages(
    words: Sequence[Ranking],
    near: Sequence[Ranking],
    qrels: Qrels,
    k: int,
    measure: str,
    *,
    folds: int,
    seed: int,
) -> tuple[FirstStageChoice, float]:
    """The best of BM25's rankings, the vectors' and their fusions, and its p-value against BM25."""
    import numpy as np

    from secondlook.evaluate.cross_validation import cross_validate, surely_better_than_first
    from secondlook.evaluate.measures import refuse_strangers
    from secondlook.evaluate.significance import t_test
    from secondlook.rank.fusion import BothScores, Fusion
    from secondlook.retrieve.hybrid import FirstStageChoice
    from secondlook.score.fusion_choice import WEIGHTS, values_by_fusion, values_of

    refuse_strangers(qrels, words)
    fusions = [Fusion(weight, scale) for scale in _SCALES for weight in WEIGHTS if weight < 1]
    tried = [FirstStageChoice(by="bm25"), FirstStageChoice(by="vectors")]
    tried += [FirstStageChoice(weight=one.weight, scale=one.scale) for one in fusions]

    def joined(scale: Scale) -> Iterator[BothScores]:
        for first, second in zip(words, near, strict=True):
            yield BothScores.of_rankings(first, second, scale)

    rows = [values_of(words, qrels, measure), values_of(near, qrels, measure)]
    scores = np.array([*rows, *values_by_fusion(joined, fusions, qrels, measure, k)])
    rng = np.random.default_rng(seed)
    tuned = cross_validate(scores, surely_better_than_first, folds, rng)
    reciprocal = 2 + fusions.index(Fusion(0.5, "ranks"))
    figures = {
        "BM25": scores[0].mean(),
        "vectors": scores[1].mean(),
        "reciprocal rank fusion": scores[reciprocal].mean(),
        "chosen, cross-validated": tuned.held_out.mean(),
    }
    choice = tried[tuned.best].model_copy(
        update={"measure": measure, "figures": {n: float(value) for n, value in figures.items()}}
    )
    return choice, t_test(tuned.held_out - scores[0])


def compare_feedback(
    words: Sequence[Ranking],
    near: Sequence[Ranking],
    moved: Sequence[Ranking],
    qrels: Qrels,
    k: int,
    choice: FirstStageChoice,
) -> FirstStageChoice:
    """The choice with feedback, if that is better by more than two standard errors.

    `near` are the rankings by vectors, `moved` those after feedback.
    """
    import numpy as np

    from secondlook.evaluate.cross_validation import surely_better_than_first
    from secondlook.rank.fusion import fuse_rankings
    from secondlook.score.fusion_choice import values_of

    rows = []
    for rankings in (near, moved):
        if choice.by == "hybrid":
            both = zip(words, rankings, strict=True)
            rankings = [fuse_rankings(a, b, choice.fusion, k) for a, b in both]
        rows.append(values_of(rankings, qrels, choice.measure))
    names = ("chosen, without feedback", "chosen, with feedback")
    told = choice.figures | {name: float(row.mean()) for name, row in zip(names, rows, strict=True)}
    kept = _FEEDBACK if surely_better_than_first(np.array(rows)) else 0.0
    return choice.model_copy(update={"feedback": kept, "figures": told})
