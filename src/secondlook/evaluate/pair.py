"""A run and the base it is compared with: values of each query, and tests of their differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from secondlook.evaluate.side import TIE_ORDERS
from secondlook.evaluate.significance import randomisation_test

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from secondlook.evaluate.side import Side, TieOrder

    Floats = NDArray[np.float64]
    Condition = Literal["as it is", "reversed", "shuffled", "answered by both"]

CONDITIONS: tuple[Condition, ...] = ("as it is", *TIE_ORDERS, "answered by both")
"""Under which a verdict must be the same: other orders of equal scores; and without the queries
that only one run answers."""


@dataclass(frozen=True, slots=True)
class PairTest:
    """The randomisation test of one measure, before any correction."""

    p: float
    gain: bool
    """Whether the new run has the higher mean."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The base and a new run, with the judged queries, each followed by its copies."""

    base: Side
    new: Side
    groups: Sequence[tuple[str, ...]]
    seed: int
    """Of the random numbers; all of a pair's tests draw the same."""

    def values(self, measure: str, order: TieOrder | None = None) -> Floats:
        """[2, queries]: the base's values and the new run's, copies averaged."""
        evaluations = [
            side.by_tie_order[order] if order else side.evaluation for side in (self.base, self.new)
        ]
        return np.array(
            [
                [np.mean([known[query] for query in group]) for group in self.groups]
                for known in (evaluation.per_query[measure] for evaluation in evaluations)
            ]
        )

    def tests(self, measures: Sequence[str]) -> Mapping[Condition, list[PairTest]]:
        """A test for each measure, under each condition."""
        plain = [self.values(measure) for measure in measures]
        found: dict[Condition, list[PairTest]] = dict.fromkeys(CONDITIONS, self._tested(plain))
        if self.base.tied or self.new.tied:
            for order in TIE_ORDERS:
                found[order] = self._tested([self.values(m, order) for m in measures])
        both = self._answered_by_both()
        if not both.all():
            found["answered by both"] = self._tested([values[:, both] for values in plain])
        return found

    def _tested(self, values: Sequence[Floats]) -> list[PairTest]:
        deltas = [new - base for base, new in values]
        return [
            PairTest(randomisation_test(own, np.random.default_rng(self.seed)), bool(own.sum() > 0))
            for own in deltas
        ]

    def _answered_by_both(self) -> NDArray[np.bool_]:
        """[queries]."""
        both = self.base.fingerprints.keys() & self.new.fingerprints.keys()
        return np.array([all(query in both for query in group) for group in self.groups])
