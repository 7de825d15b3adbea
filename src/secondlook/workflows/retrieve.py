"""First-stage retrieval for many queries, into a run file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.retrieve.hybrid import By
    from secondlook.retrieve.search_options import SearchOptions
    from secondlook.types import Query, Ranking, Retriever

_BATCH = 64
_FEW_HITS = 1000  # so many of each query that many queries fit in memory


@dataclass(frozen=True, slots=True)
class RetrieveResult:
    """A run that was written."""

    run: Path
    queries: int
    k: int

    def summary(self) -> str:
        """What was written, in one line."""
        return f"{self.run}: {self.queries:,} queries, up to {self.k:,} hits each"


def retrieve(
    index: str | Path,
    queries: str | Path,
    output: str | Path,
    *,
    k: int = 1000,
    by: By | None = None,
    judged: str | Path | None = None,
    query_format: str = "auto",
    tag: str = "secondlook",
    options: SearchOptions | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> RetrieveResult:
    """Write the top k documents of every query to a run file.

    `by` is "bm25", "vectors" or "hybrid"; by default as the index was tuned to be searched, or
    hybrid where it has vectors and was not tuned. With `judged`, only for the queries that these
    judgments name. `options` are filters, parameters and routing for an attached index. The file
    appears when it is complete.
    """
    from secondlook.data import read_qrels, read_queries, write_run
    from secondlook.retrieve.search_options import SearchOptions, searched_with
    from secondlook.workflows.open_index import open_index

    wanted = list(read_queries(str(queries), query_format))
    if judged is not None:
        keep = read_qrels(str(judged))
        wanted = [query for query in wanted if query.id in keep]
    engine = searched_with(open_index(index, by=by).engine, options or SearchOptions())
    rankings = as_progress(progress).track(
        rankings_of(engine, wanted, k), "retrieving", "queries", total=len(wanted)
    )
    write_run(Path(output), rankings, tag=tag)
    return RetrieveResult(Path(output), len(wanted), k)


def rankings_of(engine: Retriever, queries: Sequence[Query], k: int) -> Iterator[Ranking]:
    """One ranking per query, as they come."""
    at_once = getattr(engine, "queries_at_once", _BATCH) if k <= _FEW_HITS else _BATCH
    for start in range(0, len(queries), at_once):
        yield from engine.retrieve(queries[start : start + at_once], k)
