"""Judgments out of generated queries: kept is one that finds the passage it was asked of.

A generator asks what a passage answers; some of what it asks is vague, or answered elsewhere. The
round trip tells (Alberti et al., 2019, for questions; Dai et al., 2022, for retrieval): searched
for, a good query brings its own passage back among the first hits.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from heapq import nsmallest
from typing import TYPE_CHECKING

from secondlook.data.origin import query_id
from secondlook.types import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from secondlook.types import Document, Ranking


@dataclass(frozen=True, slots=True)
class GeneratedQuery:
    """A query generated from a passage, and the rank of that passage in a search for it."""

    query: str
    doc_id: str
    rank: int | None
    """None where it did not come back."""

    @classmethod
    def read(cls, line: str) -> GeneratedQuery:
        """As `line` wrote it."""
        return cls(**json.loads(line))

    @property
    def line(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


def sampled(documents: Iterable[Document], count: int, seed: int) -> list[Document]:
    """So many of them, drawn by a hash of their ids: of a corpus that grew, mostly the same."""

    def draw(document: Document) -> bytes:
        return blake2b(f"{seed}\0{document.id}".encode(), digest_size=8).digest()

    return nsmallest(count, documents, key=draw)


def round_trip(
    documents: Sequence[Document],
    queries: Sequence[Sequence[str]],
    search: Callable[[Sequence[Query]], Sequence[Ranking]],
) -> list[GeneratedQuery]:
    """Every query of every document, with the rank that `search` gives the document for it."""
    pairs = [
        (Query(query_id(text), text), document.id)
        for document, own in zip(documents, queries, strict=True)
        for text in dict.fromkeys(" ".join(query.split()) for query in own)
        if text
    ]
    found = search([query for query, _ in pairs]) if pairs else ()
    return [
        GeneratedQuery(query.text, doc_id, _rank(ranking, doc_id))
        for (query, doc_id), ranking in zip(pairs, found, strict=True)
    ]


def retrieving_their_passage(
    generated: Iterable[GeneratedQuery],
) -> tuple[list[Query], dict[str, dict[str, int]]]:
    """The queries that found their passages, and these as judgments; equal texts are one query."""
    queries: dict[str, Query] = {}
    qrels: dict[str, dict[str, int]] = {}
    for made in generated:
        if made.rank is not None:
            query = Query(query_id(made.query), made.query)
            queries.setdefault(query.id, query)
            qrels.setdefault(query.id, {})[made.doc_id] = 1
    return list(queries.values()), qrels


def _rank(ranking: Ranking, doc_id: str) -> int | None:
    ranks = {hit.doc_id: rank for rank, hit in enumerate(ranking.hits, start=1)}
    return ranks.get(doc_id)
