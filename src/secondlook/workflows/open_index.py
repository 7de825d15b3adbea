"""Open an index to search it by words, by vectors or by both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.retrieve.hybrid import By
    from secondlook.retrieve.search_index import SearchIndex


def open_index(folder: str | Path, *, by: By | None = None) -> SearchIndex:
    """Open an index that was built before.

    `by` is "bm25", "vectors" or "hybrid", both together. By default as the index was tuned to be
    searched; where it was not tuned, hybrid if it has vectors.

    >>> import secondlook as sl
    >>> index = sl.open_index("my.index")
    >>> index.retrieve(["cats land on their feet"], k=2)
    <Run 'bm25s': 1 queries, 2 hits>
    """
    from secondlook.retrieve.hybrid import open_first_stage
    from secondlook.retrieve.search_index import SearchIndex
    from secondlook.score.vectors import VectorEncoder

    return SearchIndex(open_first_stage(Path(folder), by, VectorEncoder.load_for_queries))
