"""Scores as probabilities: fitting the map from one to the other, and how far off it is."""

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


class NothingToCalibrate(SecondlookError):
    """Judged pairs that are too few, or all of one kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Scored pairs that someone has judged."""

    scores: Floats  # [pairs]
    relevant: NDArray[np.bool_]  # [pairs]
    queries: NDArray[np.intp]  # [pairs], the number of the query each belongs to


@dataclass(frozen=True, slots=True)
class Platt:
    """probability = sigmoid(slope · score + intercept)."""

    slope: float
    intercept: float

    def __call__(self, scores: Floats) -> Floats:
        """The probabilities of these scores."""
        return sigmoid(self.slope * scores + self.intercept)


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """probability = the line through the points (scores, probabilities), level beyond its ends."""

    scores: Floats
    probabilities: Floats

    def __call__(self, scores: Floats) -> Floats:
        """The probabilities of these scores."""
        return np.interp(scores, self.scores, self.probabilities)


def judged_pairs(qrels: Qrels, rankings: Iterable[Ranking], relevant_from: int) -> Judged:
    """The hits that have a grade; those of at least `relevant_from` are relevant."""
    scores: list[float] = []
    relevant: list[bool] = []
    queries: list[int] = []
    for number, ranking in enumerate(rankings):
        grades = qrels.get(ranking.query_id, {})
        for hit in ranking.hits:
            if hit.doc_id in grades:
                scores.append(hit.score)
                relevant.append(grades[hit.doc_id] >= relevant_from)
                queries.append(number)
    if sum(relevant) < 10 or len(relevant) - sum(relevant) < 10:
        raise NothingToCalibrate(
            f"the run holds {sum(relevant)} pairs judged relevant (grade {relevant_from} or more) "
            f"and {len(relevant) - sum(relevant)} judged not; at least 10 of each are needed. "
            "Judge more pairs, or change --relevant-from"
        )
    return Judged(np.array(scores), np.array(relevant), np.array(queries, np.intp))


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + e^-v), without overflow."""
    halved: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return halved


def fit_platt(scores: Floats, relevant: NDArray[np.bool_]) -> Platt:
    """Platt scaling: logistic regression on the score, by Newton's method.

    The targets are drawn in by Platt's prior, (N⁺+1)/(N⁺+2) and 1/(N⁻+2), so that separable
    data has a finite fit.
    """
    positives, negatives = relevant.sum(), (~relevant).sum()
    target = np.where(relevant, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    centre, spread = scores.mean(), max(scores.std(), 1e-9)
    x = np.stack([(scores - centre) / spread, np.ones_like(scores)], axis=1)  # [pairs, 2]
    weights = np.zeros(2)
    for _ in range(100):
        p = sigmoid(x @ weights)
        gradient = x.T @ (p - target)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        weights -= step / max(1.0, np.abs(step).max())  # at most 1 a step: far out, p is flat
        if np.abs(step).max() < 1e-10:
            break
    slope = weights[0] / spread
    return Platt(float(slope), float(weights[1] - slope * centre))


def fit_isotonic(scores: Floats, relevant: NDArray[np.bool_]) -> Isotonic:
    """Isotonic regression: the best map that never falls, as the corners of its steps."""
    from scipy.optimize import isotonic_regression

    distinct, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    share = np.bincount(place, weights=relevant) / count
    level = isotonic_regression(share, weights=count).x
    corner = np.ones(len(level), np.bool_)  # inside a step nothing is to be remembered
    corner[1:-1] = (level[1:-1] != level[:-2]) | (level[1:-1] != level[2:])
    return Isotonic(distinct[corner], np.clip(level[corner], 0.0, 1.0))


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
