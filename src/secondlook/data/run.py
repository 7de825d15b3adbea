"""A run: the rankings of many queries, as a list that knows its other forms."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from secondlook.data.conversions import rankings_of
from secondlook.data.formats import write_run
from secondlook.frames import dataframe
from secondlook.types import Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from secondlook.data.conversions import RunLike

_SHOWN = 10


class Run(list[Ranking]):
    """One ranking per query, in the order the queries were given.

    >>> run = Run.of({"q1": {"d1": 2.0, "d2": 1.5}}, name="mine")
    >>> run[0].hits[0].doc_id
    'd1'
    >>> run.to_dict()
    {'q1': {'d1': 2.0, 'd2': 1.5}}
    """

    def __init__(self, rankings: Iterable[Ranking] = (), name: str = "") -> None:
        super().__init__(rankings)
        self.name = name
        """What comparisons call it."""

    @classmethod
    def of(cls, given: RunLike, name: str = "") -> Run:
        """A run from a file, rankings, {query id: {document id: score}} or a DataFrame."""
        own = getattr(given, "name", "")  # of a DataFrame it may be a column
        return cls(rankings_of(given), name or (own if isinstance(own, str) else ""))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query id → document id → score, best first."""
        return {ranking.query_id: {h.doc_id: h.score for h in ranking.hits} for ranking in self}

    def to_dataframe(self) -> Any:  # noqa: ANN401 - pandas may not be installed
        """A row for each hit: `query_id`, `doc_id`, `rank` (from 1) and `score`."""
        rows = [
            {"query_id": r.query_id, "doc_id": hit.doc_id, "rank": rank, "score": hit.score}
            for r in self
            for rank, hit in enumerate(r.hits, start=1)
        ]
        return dataframe(rows, ["query_id", "doc_id", "rank", "score"])

    def write(self, path: str | Path) -> None:
        """Write a TREC run, or MS MARCO's format where the name ends in .tsv; .gz compresses."""
        write_run(path, self, tag=self.name.replace(" ", "-") or "secondlook")

    def __repr__(self) -> str:
        hits = sum(len(ranking.hits) for ranking in self)
        return f"<Run {self.name!r}: {len(self)} queries, {hits} hits>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the best hit of the first queries."""
        rows = "".join(
            f"<tr><td>{escape(ranking.query_id)}</td><td>{escape(ranking.hits[0].doc_id)}</td>"
            f"<td>{ranking.hits[0].score:.4f}</td></tr>"
            for ranking in self[:_SHOWN]
            if ranking.hits
        )
        head = "<tr><th>query</th><th>best hit</th><th>score</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"
