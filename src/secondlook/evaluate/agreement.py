"""How far two scorers agree on the order of the same documents."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from collections.abc import Sequence

    Scores = Sequence[Sequence[float]]
    """Of each query, a score for each of its documents."""

TOP = 10


@dataclass(frozen=True, slots=True)
class Agreement:
    """Means over the queries, of the agreement with a reference."""

    kendall: float
    """Kendall's τ-b: 1 is the same order, 0 no relation, -1 the reverse."""
    spearman: float
    """Spearman's correlation of the ranks."""
    same_first: float
    """The share of queries with the same best document."""
    shared_top: float
    """The share of the reference's ten best documents that are among the ten best here."""
    queries: int
    per_query: tuple[float, ...]
    """Kendall's τ-b of each query, in their order."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def agreement(reference: Scores, scores: Scores) -> Agreement:
    """Compare the scores of the same documents, query by query.

    Queries whose documents all have one score, on either side, have no order to agree on and count
    as 0. Raises SecondlookError where no query has two documents.
    """
    from scipy.stats import kendalltau, spearmanr

    pairs = [
        (np.asarray(wanted, np.float64), np.asarray(own, np.float64))
        for wanted, own in zip(reference, scores, strict=True)
        if len(wanted) > 1
    ]
    if not pairs:
        raise SecondlookError("agreement needs queries with two documents or more; there is none")
    kendall, spearman, first, top = [], [], [], []
    for wanted, own in pairs:
        level = wanted.max() == wanted.min() or own.max() == own.min()
        kendall.append(0.0 if level else _number(kendalltau(wanted, own).statistic))
        spearman.append(0.0 if level else _number(spearmanr(wanted, own).statistic))
        first.append(wanted.argmax() == own.argmax())
        best = set(np.argsort(-wanted, kind="stable")[:TOP].tolist())
        top.append(len(best & set(np.argsort(-own, kind="stable")[:TOP].tolist())) / len(best))
    return Agreement(
        float(np.mean(kendall)),
        float(np.mean(spearman)),
        float(np.mean(first)),
        float(np.mean(top)),
        len(pairs),
        tuple(kendall),
    )


def _number(value: float) -> float:
    return 0.0 if isnan(value) else float(value)
