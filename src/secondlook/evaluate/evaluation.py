"""The result of an evaluation: the measures of one run or of several."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from secondlook.evaluate.tables import as_text, evaluation_table, query_table
from secondlook.frames import dataframe
from secondlook.web_page import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType

DEFAULT_MEASURES = ("nDCG@10", "RR@10", "R@100")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One run by one set of judgments; measures are spelled as ir-measures spells them."""

    means: Mapping[str, float]
    """Measure → its mean over the judged queries (a sum, where it counts: NumRet)."""
    per_query: Mapping[str, Mapping[str, float]] = field(repr=False)
    """Measure → query id → value, queries in the order of the judgments."""
    judged: int
    """Queries with judgments: those the means are over."""
    missing: int
    """Judged queries that the run has no results for; each counts as zero."""
    unjudged: int
    """Queries of the run without judgments, which were ignored."""

    def summary(self) -> str:
        """The means, as plain text."""
        return as_text(evaluation_table({"": self}))

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """All figures, unrounded; with `per_query`, the values of each query too."""
        figures: dict[str, Any] = {
            "judged": self.judged,
            "missing": self.missing,
            "unjudged": self.unjudged,
            "means": self.means,
        }
        return figures | ({"per_query": self.per_query} if per_query else {})

    def to_dataframe(self) -> Any:  # noqa: ANN401 - pandas may not be installed
        """A row for each judged query, a column for each measure."""
        queries = next(iter(self.per_query.values()), {})
        rows = [
            {"query_id": query} | {m: self.per_query[m][query] for m in self.means}
            for query in queries
        ]
        return dataframe(rows, ["query_id", *self.means])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        means = [f"{value:.4f}" for value in self.means.values()]
        return table(["judged queries", *self.means], [[str(self.judged), *means]])


@dataclass(frozen=True, slots=True)
class Evaluations:
    """Several runs by the same judgments."""

    qrels: str
    runs: Mapping[str, Evaluation]
    """By the names of their files."""

    def summary(self, *, per_query: bool = False, width: int = 100) -> str:
        """The tables as plain text."""
        return as_text(self.tables(per_query=per_query), width)

    def tables(self, *, per_query: bool = False) -> RenderableType:
        """A row for each run, below one for each query if wanted; for a console of rich."""
        from rich.console import Group

        labelled = dict(zip(labels(self.runs), self.runs.values(), strict=True))
        runs = evaluation_table(labelled)
        return Group(query_table(labelled), runs) if per_query else runs

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """What a later comparison of the runs needs: values by measure, then by query."""
        return {
            "qrels": self.qrels,
            "runs": [
                {"run": run} | evaluation.to_dict(per_query=per_query)
                for run, evaluation in self.runs.items()
            ],
        }


def labels(runs: Iterable[str]) -> list[str]:
    """The runs by the names of their files, if these tell them apart."""
    paths = list(runs)
    names = [PurePath(path).name for path in paths]
    return names if len(set(names)) == len(names) else paths
