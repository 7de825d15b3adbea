"""Whether a new run helps: differences with what chance could have done, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import WrongArgument
from secondlook.evaluate.comparison import Comparison, Comparisons, Difference, overall
from secondlook.evaluate.copies import distinct_queries
from secondlook.evaluate.evaluation import DEFAULT_MEASURES
from secondlook.evaluate.measures import parse_measure
from secondlook.evaluate.objections import FEW_QUERIES, objections
from secondlook.evaluate.pair import CONDITIONS, Pair
from secondlook.evaluate.side import TIE_ORDERS, read_side
from secondlook.evaluate.significance import (
    bootstrap_interval,
    detectable,
    holm,
    queries_needed,
    t_test,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from secondlook.evaluate.comparison import Verdict
    from secondlook.evaluate.evaluation import Evaluation
    from secondlook.evaluate.pair import PairTest
    from secondlook.evaluate.side import Side
    from secondlook.types import Qrels, Ranking

JUDGED = "Judged@10"
MUCH = 0.1
"""A query that loses more than this is hurt."""
_TIE = 1e-9
_LARGEST_ALPHA = 0.5


@dataclass(frozen=True, slots=True)
class AgainstBase:
    """Runs that are tested against one base."""

    base: Side
    new: Sequence[Side]
    seed: int
    """Of the random numbers: every test draws the same, so that its p does not depend on what else
    is compared."""


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
    require_alpha(alpha)
    seed = drawn_seed(rng)
    old, *sides = read_sides(qrels, [base, *new], measures)
    [found] = judge(qrels, [AgainstBase(old, sides, seed)], measures, alpha=alpha, texts=texts)
    return found


def require_alpha(alpha: float) -> None:
    """Raises WrongArgument unless `alpha` can be a significance level."""
    if not 0 < alpha <= _LARGEST_ALPHA:
        raise WrongArgument(
            f"alpha is the significance level, above 0 and at most {_LARGEST_ALPHA}, not {alpha}; "
            "0.05 is usual"
        )


def drawn_seed(rng: np.random.Generator | None) -> int:
    """The seed of a comparison's tests; without a generator always the same."""
    return int((rng or np.random.default_rng(0)).integers(2**63))


def read_sides(
    qrels: Qrels, runs: Sequence[tuple[str, Iterable[Ranking]]], measures: Sequence[str]
) -> list[Side]:
    """Evaluate runs, given by name and rankings, for `judge`; each is read once."""
    wanted = list(dict.fromkeys([*_spelled(measures), JUDGED]))
    return [read_side(qrels, name, rankings, wanted) for name, rankings in runs]


def judge(
    qrels: Qrels,
    tried: Sequence[AgainstBase],
    measures: Sequence[str],
    *,
    alpha: float = 0.05,
    texts: Mapping[str, str] | None = None,
) -> list[Comparisons]:
    """What the tests of all pairs say, corrected (Holm) over all of them together."""
    shown = _spelled(measures)
    pairs = [
        Pair(one.base, side, distinct_queries(qrels, one.base, side, texts), one.seed)
        for one in tried
        for side in one.new
    ]
    judged = _comparisons(pairs, shown, alpha)
    return [
        Comparisons(
            one.base.name,
            one.base.evaluation.judged,
            _judged_share(one.base.evaluation),
            one.base.evaluation.missing,
            alpha,
            _only_relevant(qrels),
            tuple(islice(judged, len(one.new))),
        )
        for one in tried
    ]


def _spelled(measures: Sequence[str]) -> list[str]:
    """The measures as ir-measures spells them, none twice."""
    return list(dict.fromkeys(str(parse_measure(spelling)) for spelling in measures))


def _comparisons(
    pairs: Sequence[Pair], measures: Sequence[str], alpha: float
) -> Iterator[Comparison]:
    tests = [pair.tests(measures) for pair in pairs]
    by_condition = {
        condition: _corrected([own[condition] for own in tests], alpha) for condition in CONDITIONS
    }
    # Holm's strictest step: no power is promised
    corrected = alpha / max(1, len(pairs) * len(measures))
    for at, pair in enumerate(pairs):
        found = {condition: results[at] for condition, results in by_condition.items()}
        verdicts = {
            condition: overall(result.verdict for result in results)
            for condition, results in found.items()
        }
        said = verdicts["as it is"]
        differences = [
            _difference(measure, pair, result, alpha, corrected)
            for measure, result in zip(measures, found["as it is"], strict=True)
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
                ties_decide=any(verdicts[order] != said for order in TIE_ORDERS),
                # answering fewer queries does hurt; answering more may be the base's failure
                missing_decide=said == "helps" and verdicts["answered by both"] != said,
            ),
        )


@dataclass(frozen=True, slots=True)
class _Result:
    """A test after Holm's correction."""

    p: float
    adjusted: float
    verdict: Verdict


def _corrected(tests: Sequence[Sequence[PairTest]], alpha: float) -> list[list[_Result]]:
    """For each pair and measure, corrected over all of them."""
    adjusted = iter(holm([test.p for own in tests for test in own]))

    def result(test: PairTest) -> _Result:
        after = next(adjusted)
        if after > alpha:
            return _Result(test.p, after, "cannot tell")
        return _Result(test.p, after, "helps" if test.gain else "hurts")

    return [[result(test) for test in own] for own in tests]


def _judged_share(evaluation: Evaluation) -> float:
    """Over the queries that have results."""
    answered = evaluation.judged - evaluation.missing
    return evaluation.means[JUDGED] * evaluation.judged / answered


def _only_relevant(qrels: Qrels) -> float | None:
    grades = [grade for judged in qrels.values() for grade in judged.values()]
    judged_queries = sum(1 for judged in qrels.values() if judged)
    return len(grades) / judged_queries if min(grades) > 0 else None


def _difference(
    measure: str, pair: Pair, result: _Result, alpha: float, corrected: float
) -> Difference:
    base, new = pair.values(measure)
    deltas = new - base
    needed = queries_needed(deltas, corrected)
    more = None if needed is None else max(1, max(needed, FEW_QUERIES) - len(deltas))
    low, high = bootstrap_interval(deltas, np.random.default_rng(pair.seed), 1 - alpha)
    ids = [group[0] for group in pair.groups]
    return Difference(
        measure,
        base=float(base.mean()),
        new=float(new.mean()),
        low=low,
        high=high,
        t_test=t_test(deltas),
        randomisation=result.p,
        adjusted=result.adjusted,
        wins=int((deltas > _TIE).sum()),
        ties=int((np.abs(deltas) <= _TIE).sum()),
        losses=int((deltas < -_TIE).sum()),
        hurt=float((deltas < -MUCH - _TIE).mean()),
        verdict=result.verdict,
        more_queries=0 if result.verdict != "cannot tell" else more,
        detectable=detectable(deltas, corrected),
        values=dict(zip(ids, zip(base.tolist(), new.tolist(), strict=True), strict=True)),
    )
