"""Whether a new run helps: differences with what chance could have done, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from secondlook.evaluate.copies import distinct_queries
from secondlook.evaluate.measures import DEFAULT_MEASURES, parse_measure
from secondlook.evaluate.objections import FEW_QUERIES, Objection, objections
from secondlook.evaluate.side import TIE_ORDERS, read_side
from secondlook.evaluate.significance import (
    bootstrap_interval,
    detectable,
    holm,
    queries_needed,
    randomisation_test,
    t_test,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from secondlook.evaluate.measures import Evaluation
    from secondlook.evaluate.objections import Reason
    from secondlook.evaluate.side import Side, TieOrder
    from secondlook.types import Qrels, Ranking

    Verdict = Literal["helps", "hurts", "cannot tell"]
    Floats = NDArray[np.float64]

JUDGED = "Judged@10"
MUCH = 0.1
"""A query that loses more than this is hurt."""
ENOUGH_JUDGED = 0.9
"""Below this share of judged results in the top ten, the figures are doubtful."""
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of a new run against the base's, over the judged queries, copies as one."""

    measure: str
    base: float
    new: float
    low: float
    """The interval of the difference, at the confidence 1 - alpha; `high` is its other end."""
    high: float
    t_test: float
    randomisation: float
    adjusted: float
    """The randomisation test's p after Holm's correction over all measures and runs compared."""
    wins: int
    ties: int
    losses: int
    hurt: float
    """The share of queries that lose more than MUCH."""
    verdict: Verdict
    """By the test alone, whatever is objected to."""
    more_queries: int | None
    """How many more judged queries it would take to tell; 0 if it is told, None if no number."""
    detectable: float | None
    """The smallest difference that these queries would have shown in 8 of 10 cases; None of one
    query, which shows nothing."""
    values: Mapping[str, tuple[float, float]]
    """Query id → the base's value and the new run's; of copies, the mean under the first's id."""

    @property
    def delta(self) -> float:
        """The difference of the means."""
        return self.new - self.base

    @property
    def deltas(self) -> dict[str, float]:
        """Query id → the new run's value minus the base's."""
        return {query: new - base for query, (base, new) in self.values.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One new run against the base."""

    run: str
    differences: tuple[Difference, ...]
    queries: int
    """Judged queries, copies counted once."""
    judged_share: float
    """Of the run's top ten results."""
    missing: int
    """Judged queries that the run has no results for, each counted as zero."""
    identical: bool
    """Whether both runs have the same documents with the same scores for every judged query."""
    objections: tuple[Objection, ...]
    """Why the verdict should not be relied on."""

    @property
    def verdict(self) -> Verdict:
        """What the measures say together: harm in any outweighs help in others."""
        return self.verdict_allowing(())

    def verdict_allowing(self, allowed: Collection[Reason]) -> Verdict:
        """The verdict, if these objections are allowed to stand."""
        if self.voided_by(allowed):
            return "cannot tell"
        return _together(difference.verdict for difference in self.differences)

    def voided_by(self, allowed: Collection[Reason] = ()) -> Objection | None:
        """The first objection that makes the verdict void, if any."""
        left = (one for one in self.objections if one.voids and one.code not in allowed)
        return next(left, None)

    def acceptable(self, allowed: Collection[Reason] = ()) -> bool:
        """Whether it helps and nothing is objected to but what is allowed."""
        objected = any(one.code not in allowed for one in self.objections)
        return self.verdict_allowing(allowed) == "helps" and not objected


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All new runs against one base."""

    base: str
    queries: int
    """Judged queries, copies among them."""
    judged_share: float
    """Of the base's top ten results."""
    missing: int
    alpha: float
    only_relevant: float | None
    """Where the judgments name relevant documents only: how many for a query, on average."""
    runs: tuple[Comparison, ...]

    def acceptable(self, allowed: Collection[Reason] = ()) -> bool:
        """Whether every new run helps and nothing is objected to but what is allowed."""
        return all(run.acceptable(allowed) for run in self.runs)


def compare(
    qrels: Qrels,
    base: tuple[str, Iterable[Ranking]],
    new: Sequence[tuple[str, Iterable[Ranking]]],
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    rng: np.random.Generator | None = None,
    alpha: float = 0.05,
    texts: Mapping[str, str] | None = None,
) -> Comparisons:
    """Compare runs, given by name and rankings, with the base run.

    A difference is told (helps, hurts) where the randomisation test's p, after Holm's correction
    over all measures and runs, is at most `alpha`. So if no run differs from the base but by
    chance, the probability that any one is said to help or hurt is at most `alpha`.

    Copies of a query count as one; `texts` (query id → text) finds more of them. Raises
    SecondlookError where a run has no results for any judged query.
    """
    shown = list(dict.fromkeys(str(parse_measure(spelling)) for spelling in measures))
    wanted = list(dict.fromkeys([*shown, JUDGED]))
    old, *sides = (read_side(qrels, name, rankings, wanted) for name, rankings in (base, *new))
    # every test draws the same numbers, so that its p does not depend on what else is compared
    seed = int((rng or np.random.default_rng(0)).integers(2**63))
    pairs = [_Pair(old, side, distinct_queries(qrels, old, side, texts)) for side in sides]
    return Comparisons(
        old.name,
        old.evaluation.judged,
        _judged_share(old.evaluation),
        old.evaluation.missing,
        alpha,
        _only_relevant(qrels),
        tuple(_comparisons(pairs, shown, alpha, seed)),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """The base and a new run, with the judged queries, each followed by its copies."""

    base: Side
    new: Side
    groups: Sequence[tuple[str, ...]]

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

    def answered_by_both(self) -> NDArray[np.bool_]:
        """[queries]."""
        both = self.base.fingerprints.keys() & self.new.fingerprints.keys()
        return np.array([all(query in both for query in group) for group in self.groups])


def _comparisons(
    pairs: Sequence[_Pair], measures: Sequence[str], alpha: float, seed: int
) -> Iterator[Comparison]:
    values = [[pair.values(measure) for measure in measures] for pair in pairs]
    plain = _tested(_deltas(values), alpha, seed)
    by_ties = [
        _tested(_deltas([[p.values(m, order) for m in measures] for p in pairs]), alpha, seed)
        for order in TIE_ORDERS
        if any(pair.base.tied or pair.new.tied for pair in pairs)
    ]
    both = [pair.answered_by_both() for pair in pairs]
    by_answered = plain
    if not all(mask.all() for mask in both):
        kept = [[one[:, mask] for one in some] for some, mask in zip(values, both, strict=True)]
        by_answered = _tested(_deltas(kept), alpha, seed)
    corrected = alpha / max(1, sum(map(len, plain)))  # Holm's strictest step: no power is promised
    for at, pair in enumerate(pairs):
        said = _together(test.verdict for test in plain[at])
        differences = [
            _difference(measure, pair, some, test, alpha, corrected, seed)
            for measure, some, test in zip(measures, values[at], plain[at], strict=True)
        ]
        yield Comparison(
            pair.new.name,
            tuple(differences),
            len(pair.groups),
            _judged_share(pair.new.evaluation),
            pair.new.evaluation.missing,
            pair.base.fingerprints == pair.new.fingerprints,
            objections(
                pair.base,
                pair.new,
                pair.groups,
                alpha,
                ties_decide=any(
                    _together(test.verdict for test in tests[at]) != said for tests in by_ties
                ),
                # answering fewer queries does hurt; answering more may be the base's failure
                missing_decide=said == "helps"
                and _together(test.verdict for test in by_answered[at]) != said,
            ),
        )


@dataclass(frozen=True, slots=True)
class _Test:
    p: float
    adjusted: float
    verdict: Verdict


def _tested(deltas: Sequence[Sequence[Floats]], alpha: float, seed: int) -> list[list[_Test]]:
    """For each run and measure, corrected over all of them."""
    p_values = [
        randomisation_test(own, np.random.default_rng(seed)) for some in deltas for own in some
    ]
    adjusted = iter(zip(p_values, holm(p_values), strict=True))

    def test(own: Floats) -> _Test:
        p, after = next(adjusted)
        if after > alpha:
            return _Test(p, after, "cannot tell")
        return _Test(p, after, "helps" if own.mean() > 0 else "hurts")

    return [[test(own) for own in some] for some in deltas]


def _deltas(values: Sequence[Sequence[Floats]]) -> list[list[Floats]]:
    return [[new - base for base, new in some] for some in values]


def _together(verdicts: Iterable[Verdict]) -> Verdict:
    """Harm in any measure outweighs help in others."""
    said = set(verdicts)
    if "hurts" in said:
        return "hurts"
    return "helps" if "helps" in said else "cannot tell"


def _judged_share(evaluation: Evaluation) -> float:
    """Over the queries that have results."""
    answered = evaluation.judged - evaluation.missing
    return evaluation.means[JUDGED] * evaluation.judged / answered


def _only_relevant(qrels: Qrels) -> float | None:
    grades = [grade for judged in qrels.values() for grade in judged.values()]
    judged_queries = sum(1 for judged in qrels.values() if judged)
    return len(grades) / judged_queries if min(grades) > 0 else None


def _difference(
    measure: str,
    pair: _Pair,
    values: Floats,
    test: _Test,
    alpha: float,
    corrected: float,
    seed: int,
) -> Difference:
    base, new = values
    deltas = new - base
    needed = queries_needed(deltas, corrected)
    more = None if needed is None else max(1, max(needed, FEW_QUERIES) - len(deltas))
    low, high = bootstrap_interval(deltas, np.random.default_rng(seed), 1 - alpha)
    ids = [group[0] for group in pair.groups]
    return Difference(
        measure,
        base=float(base.mean()),
        new=float(new.mean()),
        low=low,
        high=high,
        t_test=t_test(deltas),
        randomisation=test.p,
        adjusted=test.adjusted,
        wins=int((deltas > _TIE).sum()),
        ties=int((np.abs(deltas) <= _TIE).sum()),
        losses=int((deltas < -_TIE).sum()),
        hurt=float((deltas < -MUCH - _TIE).mean()),
        verdict=test.verdict,
        more_queries=0 if test.verdict != "cannot tell" else more,
        detectable=detectable(deltas, corrected),
        values=dict(zip(ids, zip(base.tolist(), new.tolist(), strict=True), strict=True)),
    )
