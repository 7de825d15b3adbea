"""Maps from raw scores to numbers between 0 and 1, and how they are fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Platt:
    """sigmoid(slope · score + intercept)."""

    slope: float
    intercept: float

    def __call__(self, scores: Floats) -> Floats:
        """The map of these scores."""
        return sigmoid(self.slope * scores + self.intercept)


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """The line through the points (scores, probabilities), level beyond its ends."""

    scores: Floats
    probabilities: Floats

    def __call__(self, scores: Floats) -> Floats:
        """The map of these scores."""
        return np.interp(scores, self.scores, self.probabilities)


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + e^-v), without overflow."""
    halved: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return halved


def fit_platt(scores: Floats, relevant: NDArray[np.bool_]) -> Platt:
    """Platt scaling: logistic regression on the score.

    The targets are drawn in by Platt's prior, (N⁺+1)/(N⁺+2) and 1/(N⁻+2), so that separable
    data has a finite fit.
    """
    positives, negatives = relevant.sum(), (~relevant).sum()
    target = np.where(relevant, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    return _logistic(scores, target, np.ones(len(scores)))


_SURE = 0.98
_RELATED_ODDS = math.log(1 / 3)
"""One candidate in four is related: of what an engine finds, most is not. Texts of one field are
all somewhat alike, and with equal odds too many unrelated ones came above one half."""
_FLATTEST = 0.1


def fit_spread(scores: Floats, related: NDArray[np.bool_]) -> Platt:
    """A scale on which typical related pairs lie near 1 and typical unrelated ones near 0.

    Both kinds have the same weight, however many there are; then one pair in four is taken to be
    related. Targets short of 0 and 1 keep the scale flat enough that scores stay apart: typical
    pairs lie within ±5 on the logit scale. It never falls: where scores tell nothing about the two
    kinds, it is nearly level.
    """
    target = np.where(related, _SURE, 1 - _SURE)
    share = np.where(related, 0.5 / related.sum(), 0.5 / (~related).sum())
    fitted = _logistic(scores, target, share * len(scores))
    flattest = _FLATTEST / max(float(scores.std()), 1e-9)
    if fitted.slope >= flattest:
        return Platt(fitted.slope, fitted.intercept + _RELATED_ODDS)
    return Platt(flattest, -flattest * float(np.average(scores, weights=share)))


def _logistic(scores: Floats, target: Floats, weights: Floats) -> Platt:
    """Weighted logistic regression on one feature, by Newton's method."""
    centre, spread = scores.mean(), max(scores.std(), 1e-9)
    x = np.stack([(scores - centre) / spread, np.ones_like(scores)], axis=1)  # [pairs, 2]
    line = np.zeros(2)
    for _ in range(100):
        p = sigmoid(x @ line)
        gradient = x.T @ (weights * (p - target))
        hessian = (x * (weights * p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        line -= step / max(1.0, np.abs(step).max())  # at most 1 a step: far out, p is flat
        if np.abs(step).max() < 1e-10:
            break
    slope = line[0] / spread
    return Platt(float(slope), float(line[1] - slope * centre))


def fit_isotonic(scores: Floats, relevant: NDArray[np.bool_]) -> Isotonic:
    """Isotonic regression: the best map that never falls, as the corners of its steps."""
    from scipy.optimize import isotonic_regression

    distinct, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    share = np.bincount(place, weights=relevant) / count
    level = isotonic_regression(share, weights=count).x
    corner = np.ones(len(level), np.bool_)  # inside a step nothing is to be remembered
    corner[1:-1] = (level[1:-1] != level[:-2]) | (level[1:-1] != level[2:])
    return Isotonic(distinct[corner], np.clip(level[corner], 0.0, 1.0))
