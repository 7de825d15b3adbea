"""Whether a new run helps: differences with what chance could have done, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from secondlook.evaluate.comparison import Comparison, Comparisons, Difference, overall
from secondlook.evaluate.copies import distinct_queries
from secondlook.evaluate.evaluation import DEFAULT_MEASURES
from secondlook.evaluate.measures import parse_measure
from secondlook.evaluate.objections import FEW_QUERIES, objections
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from secondlook.evaluate.comparison import Verdict
    from secondlook.evaluate.evaluation import Evaluation
    from secondlook.evaluate.side import Side, TieOrder
    from secondlook.types import Qrels, Ranking

    Floats = NDArray[np.float64]

JUDGED = "Judged@10"
MUCH = 0.1
"""A query that loses more than this is hurt."""
_TIE = 1e-9


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
        said = overall(test.verdict for test in plain[at])
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
                    overall(test.verdict for test in tests[at]) != said for tests in by_ties
                ),
                # answering fewer queries does hurt; answering more may be the base's failure
                missing_decide=said == "helps"
                and overall(test.verdict for test in by_answered[at]) != said,
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
