"""Document vectors on a cluster: OpenSearch's k-NN plugin, or Elasticsearch's dense vectors.

Both keep them in Lucene's HNSW graphs and score by (1 + cosine) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from secondlook.errors import EngineProblem, MissingDocument
from secondlook.retrieve.lucene import SearchBody, match
from secondlook.retrieve.vectors import Similarities
from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.retrieve.opensearch import OpenSearchIndex
    from secondlook.retrieve.vector_files import VectorCard
    from secondlook.types import Query

VECTOR = "vector"
_MOST_DIMENSIONS = 1024  # of Lucene
_M, _EF_CONSTRUCTION = 16, 128
_MOST_CANDIDATES = 10_000

Product = Literal["opensearch", "elasticsearch"]


def product_of(answer: dict[str, Any]) -> Product:
    """Which of the two answers `GET /` so."""
    named = answer["version"].get("distribution")
    return "opensearch" if named == "opensearch" else "elasticsearch"


def vector_field(product: Product, dimension: int) -> dict[str, Any]:
    """How the mapping of an index describes the vector of a document."""
    if dimension > _MOST_DIMENSIONS:
        raise EngineProblem(
            f"the vectors have {dimension:,} dimensions, and a cluster takes {_MOST_DIMENSIONS:,}: "
            "take a smaller bi-encoder, or index with bm25s"
        )
    if product == "elasticsearch":
        return {"type": "dense_vector", "dims": dimension, "index": True, "similarity": "cosine"}
    method = {
        "name": "hnsw",
        "space_type": "cosinesimil",
        "engine": "lucene",
        "parameters": {"m": _M, "ef_construction": _EF_CONSTRUCTION},
    }
    return {"type": "knn_vector", "dimension": dimension, "method": method}


def vector_settings(product: Product) -> dict[str, Any]:
    """What an index with vectors is set to beside."""
    return {"knn": True} if product == "opensearch" else {}


def as_json(vector: NDArray[np.float32]) -> list[float]:
    """With as many digits as float32 can tell apart near 1."""
    digits: list[float] = np.round(vector.astype(np.float64), 8).tolist()
    return digits


@dataclass(frozen=True, slots=True)
class ClusterVectors:
    """The vectors of an index on a cluster."""

    index: OpenSearchIndex
    card: VectorCard
    product: Product

    def retrieve(
        self, queries: Sequence[Query], vectors: NDArray[np.float32], k: int
    ) -> list[Ranking]:
        """The `k` documents nearest to each query's vector, scored by cosine."""
        searches = [self._nearest(*pair, k) for pair in zip(queries, vectors, strict=True)]
        return [_cosines(ranking) for ranking in self.index.ask(searches, k)]

    def retrieve_both(
        self, queries: Sequence[Query], vectors: NDArray[np.float32], k: int
    ) -> tuple[list[Ranking], list[Ranking]]:
        """The best `k` by BM25 and by vectors: both of a query in one request."""
        searches = []
        for query, vector in zip(queries, vectors, strict=True):
            searches += [
                SearchBody(query, {"query": match(query.text)}),
                self._nearest(query, vector, k),
            ]
        found = self.index.ask(searches, k)
        return found[::2], [_cosines(ranking) for ranking in found[1::2]]

    def similarities(
        self, vectors: NDArray[np.float32], doc_ids: Sequence[Sequence[str]]
    ) -> list[Similarities]:
        """The cosines of each query's vector with its documents, computed by the cluster."""
        searches = [
            self._compare(vector, own, number)
            for number, (vector, own) in enumerate(zip(vectors, doc_ids, strict=True))
        ]
        most = max(map(len, doc_ids), default=0)
        found = self.index.ask(searches, max(1, most))
        return [self._in_order(ranking, own) for ranking, own in zip(found, doc_ids, strict=True)]

    def _nearest(self, query: Query, vector: NDArray[np.float32], k: int) -> SearchBody:
        if self.product == "opensearch":
            nearest = {VECTOR: {"vector": as_json(vector), "k": k}}
            return SearchBody(query, {"query": {"knn": nearest}}, words=False)
        body = {
            "field": VECTOR,
            "query_vector": as_json(vector),
            "k": k,
            "num_candidates": min(max(2 * k, 100), _MOST_CANDIDATES),
        }
        return SearchBody(query, {"knn": body}, words=False)

    def _compare(
        self, vector: NDArray[np.float32], doc_ids: Sequence[str], number: int
    ) -> SearchBody:
        from secondlook.types import Query

        if self.product == "opensearch":
            told: dict[str, Any] = {"field": VECTOR, "query_value": as_json(vector)}
            script = {
                "lang": "knn",
                "source": "knn_score",
                "params": told | {"space_type": "cosinesimil"},
            }
        else:
            script = {
                "source": f"cosineSimilarity(params.vector, '{VECTOR}') + 1.0",
                "params": {"vector": as_json(vector)},
            }
        those = {"ids": {"values": list(doc_ids)}}
        search = {"query": {"script_score": {"query": those, "script": script}}}
        return SearchBody(Query(str(number), ""), search, words=False)

    def _in_order(self, ranking: Ranking, doc_ids: Sequence[str]) -> Similarities:
        cosines = {hit.doc_id: hit.score - 1 for hit in ranking.hits}
        missing = [doc_id for doc_id in doc_ids if doc_id not in cosines]
        if missing:
            raise MissingDocument(missing, f"the vectors of index {self.index.name!r}")
        rows = np.array([cosines[doc_id] for doc_id in doc_ids], np.float32)
        return Similarities(rows, np.ones(len(rows), np.int64))


def _cosines(ranking: Ranking) -> Ranking:
    hits = (Hit(hit.doc_id, 2 * hit.score - 1) for hit in ranking.hits)
    return Ranking.of(ranking.query_id, hits)
