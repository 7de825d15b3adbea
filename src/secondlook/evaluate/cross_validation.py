"""Which of several ways is best, and what it can be expected to reach on new queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """A choice by cross-validation over queries."""

    best: int
    """The candidate that is best over all queries."""
    held_out: Floats  # [queries]
    """What each query reached with the candidate that was best on the other folds' queries."""


def cross_validate(
    values: Floats, simple: NDArray[np.bool_], folds: int, rng: np.random.Generator
) -> Tuned:
    """Choose among candidates by their mean over queries; queries are dealt into folds at random.

    `values` are a measure's: [candidates, queries]. The best of the `simple` candidates is left
    only for one whose mean is better by more than two standard errors of the difference: the
    best of many candidates looks better than it is. Of equals, the first.
    """
    queries = values.shape[1]
    fold = rng.permutation(np.arange(queries) % folds)
    held_out = np.empty(queries)
    for number in range(min(folds, queries)):
        out = fold == number
        held_out[out] = values[_choose(values[:, ~out], simple), out]
    return Tuned(_choose(values, simple), held_out)


def _choose(values: Floats, simple: NDArray[np.bool_]) -> int:
    means = values.mean(axis=1).round(12)  # equals but for rounding are equal
    best, plain = int(means.argmax()), int(np.where(simple, means, -np.inf).argmax())
    gains = values[best] - values[plain]
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
    return best if gains.mean() > 2 * error else plain
