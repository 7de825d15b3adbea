"""Open an index to search it by words, by vectors or by both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.retrieve import Index
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


def searched_by(engine: Index) -> By:
    """What its searches go by; of an attached index, "bm25" stands for its own search."""
    from secondlook.retrieve.hybrid import HybridIndex

    return engine.choice.by if isinstance(engine, HybridIndex) else "bm25"


def first_stage_name(engine: Index) -> str:
    """The same for people."""
    words = "the index's own query" if engine.card.engine == "attached" else "BM25"
    names = {"bm25": words, "vectors": "vectors", "hybrid": f"{words} and vectors"}
    return names[searched_by(engine)]


def first_stage_fingerprint(engine: Index) -> str:
    """What its candidates depend on beside the documents: weights, scale and encoder.

    Empty where words alone are searched, which the documents decide.
    """
    from secondlook.retrieve.hybrid import HybridIndex

    if not isinstance(engine, HybridIndex) or engine.choice.by == "bm25":
        return ""
    choice = engine.choice.model_dump_json(exclude={"measure", "figures"})
    return f"{choice} {engine.vectors.card.fingerprint}"
