"""Judged pairs with their scores, and how far probabilities are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from secondlook.types import Qrels, Ranking

    Floats = NDArray[np.float64]
    Fit = Callable[[Floats, NDArray[np.bool_]], Callable[[Floats], Floats]]

BINS = 15
_LEAST = 10
"""Pairs of each kind that a fit needs."""


class NothingToCalibrate(SecondlookError):
    """Judged pairs that are too few, or all of one kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Scored pairs that count as relevant or not."""

    scores: Floats  # [pairs]
    relevant: NDArray[np.bool_]  # [pairs]
    queries: NDArray[np.intp]  # [pairs], the number of the query each belongs to
    query_ids: tuple[str, ...]
    """By number."""
    positives_only: bool
    """Whether hits that nobody judged count as not relevant."""


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """How well probabilities agree with judgments, on queries that no fit has seen."""

    probabilities: Floats  # [pairs]
    relevant: NDArray[np.bool_]  # [pairs]
    error: float
    how: str
    """Where the probabilities come from, and which queries they are of."""


def judged_pairs(qrels: Qrels, rankings: Iterable[Ranking], relevant_from: int) -> Judged:
    """The hits that have a grade; those of at least `relevant_from` are relevant.

    Where fewer than ten were judged not relevant, the judgments name only what is relevant, as
    many do: then every other hit of a judged query counts as not relevant.
    """
    judged = [ranking for ranking in rankings if qrels.get(ranking.query_id)]
    graded = [
        (hit.score, qrels[ranking.query_id].get(hit.doc_id), number)
        for number, ranking in enumerate(judged)
        for hit in ranking.hits
    ]
    irrelevant = sum(grade is not None and grade < relevant_from for _, grade, _ in graded)
    positives_only = irrelevant < _LEAST
    pairs = [
        (score, grade is not None and grade >= relevant_from, number)
        for score, grade, number in graded
        if positives_only or grade is not None
    ]
    relevant = np.array([one for _, one, _ in pairs], np.bool_)
    if relevant.sum() < _LEAST or (~relevant).sum() < _LEAST:
        raise NothingToCalibrate(
            f"the run holds {relevant.sum()} pairs judged relevant (grade {relevant_from} or more) "
            f"and {(~relevant).sum()} others; at least {_LEAST} of each are needed. Judge more "
            "pairs, give a deeper run, or change the lowest grade that is relevant"
        )
    return Judged(
        np.array([score for score, _, _ in pairs]),
        relevant,
        np.array([number for _, _, number in pairs], np.intp),
        tuple(ranking.query_id for ranking in judged),
        positives_only,
    )


def expected_calibration_error(probabilities: Floats, relevant: NDArray[np.bool_]) -> float:
    """How far probabilities are from the share that is relevant, on average over 15 equal bins."""
    places = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    gap = np.bincount(places, weights=probabilities - relevant, minlength=BINS)
    return float(np.abs(gap).sum() / len(probabilities))


def cross_validated(pairs: Judged, fit: Fit, folds: int = 5) -> Floats:
    """Each pair's probability by a fit that has not seen its query: what new queries can expect."""
    distinct = np.unique(pairs.queries)
    fold_of = dict(zip(distinct.tolist(), np.arange(len(distinct)) % folds, strict=True))
    fold = np.array([fold_of[query] for query in pairs.queries.tolist()])
    probabilities = np.empty(len(pairs.scores))
    for held_out in range(folds):
        out = fold == held_out
        seen = pairs.relevant[~out]
        if not out.any():
            continue
        if seen.all() or not seen.any():
            raise NothingToCalibrate(
                "too few queries have both relevant and other judged hits; judge more queries"
            )
        probabilities[out] = fit(pairs.scores[~out], seen)(pairs.scores[out])
    return probabilities
