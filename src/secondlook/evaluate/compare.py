"""Whether a new run helps: differences with what chance could have done, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from secondlook.evaluate.measures import DEFAULT_MEASURES, evaluate, parse_measure
from secondlook.evaluate.significance import (
    bootstrap_interval,
    detectable,
    holm,
    queries_needed,
    randomisation_test,
    t_test,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from secondlook.evaluate.measures import Evaluation
    from secondlook.types import Qrels, Ranking

    Verdict = Literal["helps", "hurts", "cannot tell"]

JUDGED = "Judged@10"
MUCH = 0.1
"""A query that loses more than this is hurt."""
ENOUGH_JUDGED = 0.9
"""Below this share of judged results in the top ten, the figures are doubtful."""
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of a new run against the base's, over the judged queries."""

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
    more_queries: int | None
    """How many more judged queries it would take to tell; 0 if it is told, None if no number."""
    detectable: float | None
    """The smallest difference that these queries would have shown in 8 of 10 cases; None of one
    query, which shows nothing."""
    values: Mapping[str, tuple[float, float]]
    """Query id → the base's value and the new run's."""

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
    judged_share: float
    """Of the run's top ten results."""
    missing: int
    """Judged queries that the run has no results for, each counted as zero."""

    @property
    def verdict(self) -> Verdict:
        """What the measures say together: harm in any outweighs help in others."""
        said = {difference.verdict for difference in self.differences}
        if "hurts" in said:
            return "hurts"
        return "helps" if "helps" in said else "cannot tell"


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All new runs against one base."""

    base: str
    queries: int
    judged_share: float
    """Of the base's top ten results."""
    missing: int
    alpha: float
    runs: tuple[Comparison, ...]


def compare(
    qrels: Qrels,
    base: tuple[str, Iterable[Ranking]],
    new: Sequence[tuple[str, Iterable[Ranking]]],
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    rng: np.random.Generator,
    alpha: float = 0.05,
) -> Comparisons:
    """Compare runs, given by name and rankings, with the base run.

    A difference is told (helps, hurts) where the randomisation test's p, after Holm's correction
    over all measures and runs, is at most `alpha`. So if no run differs from the base but by
    chance, the probability that any one is said to help or hurt is at most `alpha`.
    """
    shown = list(dict.fromkeys(str(parse_measure(spelling)) for spelling in measures))
    wanted = list(dict.fromkeys([*shown, JUDGED]))
    before = evaluate(qrels, base[1], wanted)
    after = [(name, evaluate(qrels, rankings, wanted)) for name, rankings in new]
    p_values = [
        randomisation_test(_deltas(measure, before, evaluation), rng)
        for _, evaluation in after
        for measure in shown
    ]
    adjusted = iter(zip(p_values, holm(p_values), strict=True))
    corrected = alpha / max(1, len(p_values))  # the strictest step of Holm's: power is not promised
    runs = [
        Comparison(
            name,
            tuple(
                _difference(measure, before, evaluation, next(adjusted), rng, alpha, corrected)
                for measure in shown
            ),
            _judged_share(evaluation),
            evaluation.missing,
        )
        for name, evaluation in after
    ]
    return Comparisons(
        base[0], before.judged, _judged_share(before), before.missing, alpha, tuple(runs)
    )


def _judged_share(evaluation: Evaluation) -> float:
    """Over the queries that have results."""
    answered = evaluation.judged - evaluation.missing
    return evaluation.means[JUDGED] * evaluation.judged / answered if answered else 0.0


def _deltas(measure: str, base: Evaluation, new: Evaluation) -> NDArray[np.float64]:
    """[queries], in the order of the judgments."""
    was, now = base.per_query[measure], new.per_query[measure]
    return np.array([now[query] - was[query] for query in was])


def _difference(
    measure: str,
    base: Evaluation,
    new: Evaluation,
    p_values: tuple[float, float],
    rng: np.random.Generator,
    alpha: float,
    corrected: float,
) -> Difference:
    deltas, was, now = _deltas(measure, base, new), base.per_query[measure], new.per_query[measure]
    randomisation, adjusted = p_values
    verdict: Verdict = "cannot tell"
    if adjusted <= alpha:
        verdict = "helps" if deltas.mean() > 0 else "hurts"
    needed = queries_needed(deltas, corrected)
    more = None if needed is None else max(1, needed - len(deltas))
    low, high = bootstrap_interval(deltas, rng, 1 - alpha)
    return Difference(
        measure,
        base=float(np.mean(list(was.values()))),
        new=float(np.mean(list(now.values()))),
        low=low,
        high=high,
        t_test=t_test(deltas),
        randomisation=randomisation,
        adjusted=adjusted,
        wins=int((deltas > _TIE).sum()),
        ties=int((np.abs(deltas) <= _TIE).sum()),
        losses=int((deltas < -_TIE).sum()),
        hurt=float((deltas < -MUCH - _TIE).mean()),
        verdict=verdict,
        more_queries=0 if verdict != "cannot tell" else more,
        detectable=detectable(deltas, corrected),
        values={query: (was[query], now[query]) for query in was},
    )
