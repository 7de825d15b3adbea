"""Search by stored document vectors, in this process."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from secondlook.encode.windows import pool
from secondlook.retrieve.digests import changed_files
from secondlook.retrieve.state_files import StoredStates
from secondlook.retrieve.ties import hits_at
from secondlook.retrieve.vector_files import (
    FOLDER,
    VectorFiles,
    damaged_vectors,
    read_vector_card,
)
from secondlook.retrieve.vector_graph import Graphs, graph_path
from secondlook.types import Ranking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.encode.settings import WindowSettings
    from secondlook.retrieve.vector_files import VectorCard
    from secondlook.types import Query

_BLOCK = 32_768
_QUERIES_AT_ONCE = 64
"""Each has a similarity with every row where all are compared: 25 MB for 100,000 rows."""


class Similarities(NamedTuple):
    """The cosines of one query with documents, a row for each window."""

    rows: NDArray[np.float32]  # [rows], document after document
    counts: NDArray[np.int64]  # [documents], how many rows each has


class DocumentVectors:
    """The vectors in an index folder. Threads may share them.

    Up to 100,000 rows every one is compared; of more, HNSW graphs name candidates, and these are
    compared exactly.
    """

    def __init__(self, index: Path) -> None:
        self._files = VectorFiles(index / FOLDER)
        self._graphs = Graphs(index / FOLDER, self.card) if self.card.graphs else None

    @property
    def card(self) -> VectorCard:
        """What they are, and what made them."""
        return self._files.card

    @cached_property
    def states(self) -> StoredStates | None:
        """States of the documents' tokens; None where they are not stored."""
        return StoredStates(self._files) if self.card.state_tokens else None

    def retrieve(
        self, queries: Sequence[Query], vectors: NDArray[np.float32], k: int
    ) -> list[Ranking]:
        """The `k` documents nearest to each query's vector, by cosine. vectors: [queries, dim]."""
        rankings: list[Ranking] = []
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            part = slice(start, start + _QUERIES_AT_ONCE)
            rankings += self._retrieve(queries[part], vectors[part], k)
        return rankings

    def _retrieve(
        self, queries: Sequence[Query], vectors: NDArray[np.float32], k: int
    ) -> list[Ranking]:
        if self._graphs is None:
            found = self._compare_all(vectors)
            return [
                self._ranking(query, np.arange(len(scores)), scores, k)
                for query, scores in zip(queries, found, strict=True)
            ]
        candidates = self._candidates(self._graphs, vectors, k)
        return [
            self._nearest(query, vector, documents, k)
            for query, vector, documents in zip(queries, vectors, candidates, strict=True)
        ]

    def _candidates(
        self, graphs: Graphs, vectors: NDArray[np.float32], k: int
    ) -> list[NDArray[np.int64]]:
        """For each vector, documents that are likely its nearest, `k` or more where there are.

        A few long documents may have all of the nearest rows: then twice as many are asked for.
        """
        count = k * -(-self.card.rows // self.card.documents)
        wanted = min(k, self.card.documents)
        found: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(vectors)
        left = list(range(len(vectors)))
        while left:
            for number, rows in zip(left, graphs.search(vectors[left], count), strict=True):
                found[number] = np.unique(self._files.documents_of(rows))
            if count >= self.card.rows:
                break
            left = [number for number in left if len(found[number]) < wanted]
            count *= 2
        return found

    def similarities(
        self, vectors: NDArray[np.float32], doc_ids: Sequence[Sequence[str]]
    ) -> list[Similarities]:
        """The cosines of each query's vector with the rows of its documents."""
        return [
            self._similarities(vector, self._files.positions.of(own))
            for vector, own in zip(vectors, doc_ids, strict=True)
        ]

    def read(self, doc_ids: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """All rows of these documents, one after the other, and how many each has."""
        rows, counts = self._files.rows_of(self._files.positions.of(doc_ids))
        return self._files.rows.read(rows), counts

    def verify(self) -> None:
        """Read all files; raises IndexProblem unless they are as they were written."""
        verify_vectors(self._files.folder)

    def _similarities(
        self, vector: NDArray[np.float32], documents: NDArray[np.int64]
    ) -> Similarities:
        rows, counts = self._files.rows_of(documents)
        return Similarities(self._files.rows.read(rows) @ vector, counts)

    def _compare_all(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Every document's cosine with every vector: [vectors, documents]."""
        total = len(self._files.rows)
        scores = np.empty((len(vectors), total), np.float32)
        for start in range(0, total, _BLOCK):
            part = slice(start, min(start + _BLOCK, total))
            scores[:, part] = self._files.rows.similarities(part, vectors).T
        counts = self._files.counts
        if counts is None:
            return scores
        return np.stack([pooled(Similarities(own, counts), self.card.windows) for own in scores])

    def _nearest(
        self, query: Query, vector: NDArray[np.float32], documents: NDArray[np.int64], k: int
    ) -> Ranking:
        scores = pooled(self._similarities(vector, documents), self.card.windows)
        return self._ranking(query, documents, scores, k)

    def _ranking(
        self, query: Query, documents: NDArray[np.int64], scores: NDArray[np.float32], k: int
    ) -> Ranking:
        best = np.arange(len(scores))
        if k < len(scores):
            best = np.argpartition(scores, -k)[-k:]
        ids = self._files.ids
        return Ranking.of(query.id, hits_at(best, scores, lambda at: ids.at(documents[at])))


def verify_vectors(folder: Path) -> None:
    """Read a finished folder of vectors; raises IndexProblem unless it is as it was written.

    Of older ones, which keep no digests, only the sizes of the files are looked at. Graphs are read
    as files, without the library that searches them.
    """
    card = read_vector_card(folder)
    if card.stored == "folder":
        files = VectorFiles(folder)
        if card.state_tokens:
            StoredStates(files)
    graphs = [graph_path(folder, number) for number in range(card.graphs)]
    gone = [path.name for path in graphs if not path.is_file()]
    if changed := gone or changed_files(folder):
        raise damaged_vectors(folder, f"not as they were written: {', '.join(changed)}")


def pooled(found: Similarities, windows: WindowSettings | None) -> NDArray[np.float32]:
    """One similarity for each document, as windows are pooled."""
    if windows is None:
        return found.rows
    return pool(found.rows, found.counts.tolist(), windows)
