"""Which of several ways is best, and what it can be expected to reach on new queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray

    from secondlook.types import Qrels

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """A choice by cross-validation over queries."""

    best: int
    """The candidate that is chosen by all queries."""
    held_out: Floats  # [queries]
    """What each query reached with the candidate that the other folds' queries chose."""


def judged_among(qrels: Qrels, searched: Collection[str]) -> Qrels:
    """The judgments of the queries that were searched: any other would be zero by each candidate.

    Raises SecondlookError where fewer than two are left, which cannot be cross-validated.
    """
    own = {query: grades for query, grades in qrels.items() if grades and query in searched}
    if len(own) < 2:
        raise SecondlookError(
            f"of the {len(qrels):,} judged queries {len(own) or 'none'} was searched, and a choice "
            "by cross-validation takes at least two; give judgments of the queries that are "
            "searched"
        )
    return own


def cross_validate(
    values: Floats, choose: Callable[[Floats], int], folds: int, rng: np.random.Generator
) -> Tuned:
    """Choose among candidates by `choose`; queries are dealt into folds at random.

    `values` are a measure's: [candidates, queries].
    """
    queries = values.shape[1]
    fold = rng.permutation(np.arange(queries) % folds)
    held_out = np.empty(queries)
    for number in range(min(folds, queries)):
        out = fold == number
        held_out[out] = values[choose(values[:, ~out]), out]
    return Tuned(choose(values), held_out)


def best_of(values: Floats) -> int:
    """The candidate with the best mean; of equals, the first."""
    return int(values.mean(axis=1).round(12).argmax())  # equals but for rounding are equal


def surely_better_than_first(values: Floats) -> int:
    """The first candidate, unless another is better by more than two standard errors.

    The best of many candidates looks better than it is.
    """
    best = best_of(values)
    gains = values[best] - values[0]
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
    return best if gains.mean() > 2 * error else 0
