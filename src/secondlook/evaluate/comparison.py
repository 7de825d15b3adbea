"""The result of a comparison: figures for programs, a table for people, a page for notebooks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from secondlook.evaluate.tables import as_text, comparison_tables
from secondlook.evaluate.verdict import figure_rows, sentence, warnings
from secondlook.frames import dataframe
from secondlook.web_page import table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rich.console import RenderableType

    from secondlook.evaluate.objections import Objection, Reason

    Verdict = Literal["helps", "hurts", "cannot tell"]


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
    values: Mapping[str, tuple[float, float]] = field(repr=False)
    """Query id → the base's value and the new run's; of copies, the mean under the first's id."""

    @property
    def delta(self) -> float:
        """The difference of the means."""
        return self.new - self.base

    @property
    def deltas(self) -> dict[str, float]:
        """Query id → the new run's value minus the base's."""
        return {query: new - base for query, (base, new) in self.values.items()}


@dataclass(frozen=True, slots=True, repr=False)
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
        return overall(difference.verdict for difference in self.differences)

    def voided_by(self, allowed: Collection[Reason] = ()) -> Objection | None:
        """The first objection that makes the verdict void, if any."""
        left = (one for one in self.objections if one.voids and one.code not in allowed)
        return next(left, None)

    def acceptable(self, allowed: Collection[Reason] = ()) -> bool:
        """Whether it helps and nothing is objected to but what is allowed."""
        objected = any(one.code not in allowed for one in self.objections)
        return self.verdict_allowing(allowed) == "helps" and not objected

    def __repr__(self) -> str:
        first = self.differences[0]
        change = f"{first.measure} {first.base:.3f} -> {first.new:.3f}"
        return f"<Comparison of {self.run!r}: {self.verdict}, {change}>"


@dataclass(frozen=True, slots=True, repr=False)
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

    @property
    def verdict(self) -> Verdict:
        """What all runs come to: harm of one outweighs help of others."""
        return overall(run.verdict for run in self.runs)

    def summary(self, allowed: Collection[Reason] = (), *, width: int = 100) -> str:
        """A table for each run with its verdict, objections and warnings, as plain text."""
        return as_text(self.tables(allowed), width)

    def tables(self, allowed: Collection[Reason] = ()) -> RenderableType:
        """The same for a console of rich, in colour."""
        return comparison_tables(self, allowed)

    def to_dict(self, allowed: Collection[Reason] = ()) -> dict[str, Any]:
        """All figures, unrounded; JSON can hold them."""
        figures = asdict(self)
        for run, own in zip(self.runs, figures["runs"], strict=True):
            own["verdict"] = run.verdict_allowing(allowed)
            own["acceptable"] = run.acceptable(allowed)
            own["sentence"] = sentence(run, self, allowed)
            for difference, values in zip(run.differences, own["differences"], strict=True):
                values["delta"] = difference.delta
        return figures | {"warnings": warnings(self)}

    def to_dataframe(self) -> Any:  # noqa: ANN401 - pandas may not be installed
        """A row for each run and measure; `Difference.values` has the values of the queries."""
        rows = [
            {"run": run.run} | {name: getattr(difference, name) for name in _COLUMNS[1:]}
            for run in self.runs
            for difference in run.differences
        ]
        return dataframe(rows, _COLUMNS)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{run.run!r} {run.verdict}" for run in self.runs)
        return f"<Comparisons with {self.base!r}, {self.queries} judged queries: {verdicts}>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return "".join(self._html_of(run) for run in self.runs)

    def _html_of(self, run: Comparison) -> str:
        header = ["", *(difference.measure for difference in run.differences)]
        rows = [[name, *cells] for name, cells in figure_rows(run, self)]
        doubts = [objection.sentence for objection in run.objections]
        lines = [sentence(run, self), *doubts]
        return table(header, rows, caption=f"{run.run} against {self.base}") + "".join(
            f"<p>{escape(line)}</p>" for line in lines
        )


_COLUMNS = (
    "run",
    "measure",
    "base",
    "new",
    "delta",
    "low",
    "high",
    "randomisation",
    "adjusted",
    "wins",
    "ties",
    "losses",
    "verdict",
)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict of several: harm in any outweighs help in others."""
    said = set(verdicts)
    if "hurts" in said:
        return "hurts"
    return "helps" if "helps" in said else "cannot tell"
