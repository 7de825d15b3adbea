"""Means by what is known of queries, a column for each run: MarkedBERT's tables 2 and 3."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.errors import SecondlookError
from secondlook.evaluate.breakdown import groups_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from secondlook.evaluate.breakdown import Facet
    from secondlook.types import Qrels, Ranking


@dataclass(frozen=True, slots=True)
class QueryRow:
    """The queries of one kind."""

    label: str
    queries: int
    means: tuple[float, ...]
    """Of each run."""

    @property
    def gains(self) -> tuple[float | None, ...]:
        """By what share the last run is better than each of those before it; None from zero."""
        *others, last = self.means
        return tuple(last / other - 1 if other else None for other in others)


@dataclass(frozen=True, slots=True)
class QueryTable:
    """A measure of some runs, by one thing that is known of queries."""

    facet: str
    measure: str
    runs: tuple[str, ...]
    rows: tuple[QueryRow, ...]

    def summary(self) -> str:
        """A table in Markdown; what the last run gains on each of the others stands at its end."""
        gains = [f"over {run}" for run in self.runs[:-1]]
        names = [self.facet, "queries", *self.runs, *gains]
        lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
        for row in self.rows:
            shown = [f"{mean:.4f}" for mean in row.means]
            shown += ["" if gain is None else f"{gain:+.1%}" for gain in row.gains]
            lines.append(f"| {row.label} | {row.queries:,} | {' | '.join(shown)} |")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def table_by(
    values: Mapping[str, Mapping[str, float]],
    facet: Facet,
    measure: str,
    only: Collection[str] | None = None,
) -> QueryTable:
    """The table of these runs' values per query; `only` are the queries that count, None is all.

    Queries of which the facet knows nothing are left out.
    """
    queries = [q for q in next(iter(values.values())) if only is None or q in only]
    known = {query: facet.values[query] for query in queries if query in facet.values}
    if not known:
        raise SecondlookError(
            f"no query that is left has a {facet.name}; are these the queries of the judgments?"
        )
    rows = [
        QueryRow(
            label, len(some), tuple(float(np.mean([of[q] for q in some])) for of in values.values())
        )
        for label, some in groups_of(facet, known)
    ]
    return QueryTable(facet.name, measure, tuple(values), tuple(rows))


def found_by(
    qrels: Qrels, rankings: Iterable[Ranking], depth: int = 1000, relevant_from: int = 1
) -> set[str]:
    """The queries with a relevant document among the first hits: those a re-ranker can help.

    MarkedBERT analyses these only, 6,264 of the 6,980 of MS MARCO's development set.
    """
    found = set()
    for ranking in rankings:
        grades = qrels.get(ranking.query_id, {})
        if any(grades.get(hit.doc_id, 0) >= relevant_from for hit in ranking.hits[:depth]):
            found.add(ranking.query_id)
    return found
