"""Which of several re-rankers is best, how surely, how fast and at what price."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.evaluate.compare import AgainstBase, drawn_seed, judge, read_sides
from secondlook.evaluate.significance import bootstrap_interval
from secondlook.evaluate.verdict import sentence, warnings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.evaluate.comparison import Comparison, Comparisons, Verdict
    from secondlook.types import Qrels, Ranking


def shown_ms(milliseconds: float) -> str:
    """As people read it: BM25 over a small corpus takes less than a millisecond, and not 0."""
    return f"{milliseconds:,.0f}" if milliseconds >= 10 else f"{milliseconds:.2g}"


@dataclass(frozen=True, slots=True)
class Speed:
    """How long searches took, one after the other."""

    seconds: tuple[float, ...]
    """Of each search that was timed."""

    @property
    def median(self) -> float | None:
        """None where nothing was timed."""
        return median(self.seconds) if self.seconds else None

    @property
    def p95(self) -> float | None:
        """What 95 of 100 searches stay below."""
        return float(np.quantile(self.seconds, 0.95)) if self.seconds else None

    @property
    def mean(self) -> float | None:
        """What a machine that does nothing else spends on a search."""
        return float(np.mean(self.seconds)) if self.seconds else None


@dataclass(frozen=True, slots=True)
class Cost:
    """What 1,000 searches cost, and by what price."""

    per_1000: float | None
    """None where no price is known."""
    basis: str = ""
    """In words."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """The first stage or one re-ranker: its run and what it took."""

    name: str
    rankings: Sequence[Ranking]
    speed: Speed
    cost: Cost
    remote: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result."""

    name: str
    remote: bool
    measures: dict[str, float]
    low: float
    """The 95% interval of the first measure; `high` is its other end."""
    high: float
    verdict: str
    """Against the first stage: helps, hurts, cannot tell; empty for the first stage itself."""
    adjusted: float | None
    """The p-value of the first measure against the first stage, Holm-adjusted over all tests."""
    median_ms: float | None
    p95_ms: float | None
    timed: int
    """How many searches the latency is of."""
    cost_per_1000: float | None
    cost_basis: str


@dataclass(frozen=True, slots=True)
class Contest:
    """All pairs of runs tested on the same queries; p-values are corrected (Holm) over all."""

    rows: tuple[Row, ...]
    """The first stage, then the re-rankers in the order given."""
    families: tuple[Comparisons, ...]
    """Every run but the last, each as the base of those behind it."""
    measure: str
    """The first, by which the best is chosen."""

    @property
    def against_first_stage(self) -> Comparisons:
        """The gate: each re-ranker against the first stage."""
        return self.families[0]

    @property
    def best(self) -> Row:
        """The highest mean of the first measure; of equals the first."""
        return max(self.rows, key=lambda row: row.measures[self.measure])

    @property
    def tests(self) -> int:
        """How many p-values were corrected together."""
        return sum(len(run.differences) for family in self.families for run in family.runs)

    def comparison(self, one: str, other: str) -> tuple[Comparison, bool]:
        """The tests of two runs, and whether `one` is their base."""
        for family in self.families:
            for run in family.runs:
                if {family.base, run.run} == {one, other}:
                    return run, family.base == one
        raise KeyError((one, other))

    def beaten(self) -> list[str]:
        """Which runs the best is significantly better than."""
        return [row.name for row in self._others() if self._told(row.name)]

    def equals(self) -> list[str]:
        """Which runs cannot be told from the best."""
        return [row.name for row in self._others() if not self._told(row.name)]

    def sentence(self) -> str:
        """Which is best, and how surely."""
        best, alpha = self.best, self.against_first_stage.alpha
        mean = f"{self.measure} {best.measures[self.measure]:.3f}"
        if best == self.rows[0]:
            told = f"No re-ranker beats the first stage ({mean}) on these queries"
        else:
            told = f"{best.name} is best ({mean})"
        if beaten := self.beaten():
            told += f"; significantly better than {_listed(beaten)} (p ≤ {alpha:g}, Holm-adjusted)"
        if equals := self.equals():
            told += f"; not significantly better than {_listed(equals)}"
        return told + "."

    def cheapest(self) -> str:
        """Of the best and those that cannot be told from it, which is cheapest and fastest."""
        names = [self.best.name, *self.equals()]
        rows = [row for row in self.rows[1:] if row.name in names]
        if len(rows) < 2:
            return ""
        said: dict[str, list[str]] = {}
        if all(row.cost_per_1000 is not None for row in rows):
            least = min(rows, key=lambda row: row.cost_per_1000 or 0.0)
            said[least.name] = [f"the cheapest ({least.cost_per_1000:.3g} per 1,000)"]
        if all(row.median_ms is not None for row in rows):
            quick = min(rows, key=lambda row: row.median_ms or 0.0)
            fastest = f"the fastest ({shown_ms(quick.median_ms or 0.0)} ms)"
            said.setdefault(quick.name, []).append(fastest)
        if not said:
            return ""
        told = (f"{name} is {' and '.join(what)}" for name, what in said.items())
        return f"Of the best and those not told from it, {'; '.join(told)}."

    def doubts(self) -> list[str]:
        """Why the result should be read with care."""
        gate = self.against_first_stage
        found = [
            f"{run.run} against {family.base}: {one.sentence}" if one.voids else one.sentence
            for family in self.families
            for run in family.runs
            for one in run.objections
        ]
        # all rank the same candidates: what holds for the least judged run is said once
        least = min(gate.runs, key=lambda run: run.judged_share)
        return list(dict.fromkeys([*found, *warnings(replace(gate, runs=(least,)))]))

    def sentences(self) -> list[tuple[str, str]]:
        """Each re-ranker's verdict against the first stage, in words."""
        gate = self.against_first_stage
        return [(run.run, sentence(run, gate)) for run in gate.runs]

    def to_dict(self) -> dict[str, Any]:
        """All figures, unrounded."""
        pairs = []
        for one, other in combinations([row.name for row in self.rows], 2):
            tested, _ = self.comparison(one, other)
            difference = tested.differences[0]
            pairs.append(
                {
                    "base": one,
                    "new": other,
                    "difference": difference.delta,
                    "low": difference.low,
                    "high": difference.high,
                    "p": difference.randomisation,
                    "p_adjusted": difference.adjusted,
                    "verdict": _verdict(tested),
                }
            )
        return {
            "measure": self.measure,
            "alpha": self.against_first_stage.alpha,
            "queries": self.against_first_stage.queries,
            "best": self.best.name,
            "sentence": self.sentence(),
            "better_than": self.beaten(),
            "not_told_from": self.equals(),
            "rankers": [asdict(row) for row in self.rows],
            "tests": self.tests,
            "pairs": pairs,
            "doubts": self.doubts(),
        }

    def _others(self) -> list[Row]:
        best = self.best
        return [row for row in self.rows if row != best]

    def _told(self, other: str) -> bool:
        """Whether the best is better than another by more than chance."""
        tested, _ = self.comparison(self.best.name, other)
        return _verdict(tested) != "cannot tell"


def contest(
    qrels: Qrels,
    contestants: Sequence[Contestant],
    measures: Sequence[str],
    *,
    alpha: float,
    rng: np.random.Generator,
    texts: Mapping[str, str],
) -> Contest:
    """Test all pairs; the first contestant is the first stage."""
    seed = drawn_seed(rng)
    tests_seed = drawn_seed(np.random.default_rng(seed))
    sides = read_sides(qrels, [(one.name, one.rankings) for one in contestants], measures)
    tried = [AgainstBase(side, sides[at:], tests_seed) for at, side in enumerate(sides[:-1], 1)]
    families = judge(qrels, tried, measures, alpha=alpha, texts=texts)
    gate = families[0]
    rows = [_row(contestants[0], gate.runs[0], None, seed)]
    rows += [_row(one, run, run, seed) for one, run in zip(contestants[1:], gate.runs, strict=True)]
    return Contest(tuple(rows), tuple(families), gate.runs[0].differences[0].measure)


def _row(one: Contestant, figures: Comparison, gate: Comparison | None, seed: int) -> Row:
    """`figures` has the means of this run: as the base where there is no gate, else as the new."""
    side = 0 if gate is None else 1
    first = figures.differences[0]
    values = np.array([pair[side] for pair in first.values.values()])
    low, high = bootstrap_interval(values, np.random.default_rng(seed))
    speed = one.speed
    return Row(
        one.name,
        one.remote,
        {each.measure: each.new if side else each.base for each in figures.differences},
        low,
        high,
        gate.verdict if gate else "",
        first.adjusted if gate else None,
        None if speed.median is None else 1000 * speed.median,
        None if speed.p95 is None else 1000 * speed.p95,
        len(speed.seconds),
        one.cost.per_1000,
        one.cost.basis,
    )


def _verdict(tested: Comparison) -> Verdict:
    """By the first measure; what an objection voids is not told."""
    return "cannot tell" if tested.voided_by() else tested.differences[0].verdict


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
