"""First-stage retrieval by BM25, by document vectors, or by both together."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from pydantic import Field, ValidationError

from secondlook.data.durable import write_at_once
from secondlook.errors import IndexProblem, UnknownName
from secondlook.rank.fusion import Fusion, fuse_rankings
from secondlook.recipe import Settings
from secondlook.retrieve import open_index
from secondlook.retrieve.folder import CARD
from secondlook.retrieve.index import signals_of
from secondlook.retrieve.search_options import refuse_no_hits, searched_with
from secondlook.retrieve.vector_files import (
    ENCODER,
    FOLDER,
    VECTOR_CARD,
    has_vectors,
    read_vector_card,
)
from secondlook.retrieve.vectors import DocumentVectors, verify_vectors
from secondlook.types import Ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.retrieve.engines import Engine
    from secondlook.retrieve.folder import IndexCard
    from secondlook.retrieve.index import Index
    from secondlook.retrieve.search_options import SearchOptions
    from secondlook.retrieve.vector_files import VectorCard
    from secondlook.retrieve.vectors import Similarities
    from secondlook.types import Document, Query

By = Literal["bm25", "vectors", "hybrid"]
_CHOICE = "first_stage.json"
_FEEDBACK_DOCUMENTS = 8
_LEAST_DEPTH = 100
"""Hits of each part that are fused, however few are asked for: so the first ten are the same."""


class FirstStageChoice(Settings):
    """What an index was tuned to, by judgments."""

    by: By = "hybrid"
    weight: float = Field(default=0.5, ge=0, le=1)
    """Of BM25's score; the rest is the vectors'."""
    scale: Literal["min-max", "z", "ranks", "raw"] = "ranks"
    feedback: float = Field(default=0.0, ge=0, lt=1)
    """How far the query's vector is moved towards those of its nearest documents; 0: not at all."""
    measure: str = ""
    figures: dict[str, float] = Field(default_factory=dict)
    """The measure by each first stage, cross-validated."""

    @property
    def fusion(self) -> Fusion:
        """How both parts become one score."""
        return Fusion(self.weight, self.scale)


class QueryEncoder(Protocol):
    """Makes vectors of queries."""

    def query_vectors(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        """One unit vector for each query: [queries, dimension]."""
        ...


@runtime_checkable
class VectorSearch(Protocol):
    """Where document vectors are, and how they are searched: in the folder, or on a cluster."""

    @property
    def card(self) -> VectorCard:
        """What they are, and what made them."""
        ...

    def retrieve(
        self, queries: Sequence[Query], vectors: NDArray[np.float32], k: int
    ) -> list[Ranking]:
        """The `k` documents nearest to each query's vector, scored by cosine."""
        ...

    def similarities(
        self, vectors: NDArray[np.float32], doc_ids: Sequence[Sequence[str]]
    ) -> list[Similarities]:
        """The cosines of each query's vector with its documents."""
        ...


@runtime_checkable
class BothAtOnce(Protocol):
    """An engine that searches words and vectors in one request."""

    def retrieve_both(
        self, queries: Sequence[Query], vectors: NDArray[np.float32], k: int
    ) -> tuple[list[Ranking], list[Ranking]]:
        """The best `k` by BM25, and the best `k` by vectors."""
        ...


@runtime_checkable
class ReadsVectors(Protocol):
    """Where stored vectors can be had back, as they can from a folder."""

    def read(self, doc_ids: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """All rows of these documents, one after the other, and how many each has."""
        ...


class HybridIndex:
    """An index with vectors: searched by them, by BM25, or by both.

    Vectors and encoder are opened when they are first needed.
    """

    def __init__(
        self,
        engine: Index,
        choice: FirstStageChoice,
        open_vectors: Callable[[], VectorSearch],
        load_encoder: Callable[[], QueryEncoder],
    ) -> None:
        self.engine, self.choice = engine, choice
        self._open_vectors, self._load_encoder = open_vectors, load_encoder

    @cached_property
    def vectors(self) -> VectorSearch:
        """The documents' vectors."""
        return self._open_vectors()

    @cached_property
    def encoder(self) -> QueryEncoder:
        """What makes vectors of queries."""
        return self._load_encoder()

    def warm_up(self) -> None:
        """Open now what the first search would wait for."""
        if self.choice.by != "bm25":
            _ = self.vectors, self.encoder

    @property
    def card(self) -> IndexCard:
        """The engine's."""
        return self.engine.card

    def verify(self) -> None:
        """Look at everything that the engine keeps, and at vectors that the folder does."""
        self.engine.verify()
        if isinstance(self.vectors, DocumentVectors):
            self.vectors.verify()

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """The best `k`; by vectors, documents without a word of the query are found too."""
        refuse_no_hits(k)
        if self.choice.by == "bm25":
            return self.engine.retrieve(queries, k)
        asked = [query for query in queries if query.text.strip()]
        found = iter(self._near(asked, k) if asked else ())
        # The vector of no text is near to some documents all the same.
        return [next(found) if query.text.strip() else Ranking(query.id, ()) for query in queries]

    def _near(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """By vectors, or by both."""
        vectors = self.encoder.query_vectors(queries)
        if self.choice.feedback:
            vectors = self._moved(queries, vectors)
        if self.choice.by == "vectors":
            return self.vectors.retrieve(queries, vectors, k)
        depth = max(k, _LEAST_DEPTH)
        if isinstance(self.vectors, BothAtOnce):
            words, near = self.vectors.retrieve_both(queries, vectors, depth)
        else:
            words = self.engine.retrieve(queries, depth)
            near = self.vectors.retrieve(queries, vectors, depth)
        return [
            fuse_rankings(first, second, self.choice.fusion, k)
            for first, second in zip(words, near, strict=True)
        ]

    def _moved(self, queries: Sequence[Query], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Pseudo-relevance feedback (Rocchio): towards the mean of the nearest documents."""
        import numpy as np

        stored, share = self.vectors, self.choice.feedback
        if not isinstance(stored, ReadsVectors):
            raise IndexProblem("a cluster does not give vectors back: tune without feedback")
        moved = np.empty_like(vectors)
        for number, near in enumerate(stored.retrieve(queries, vectors, _FEEDBACK_DOCUMENTS)):
            rows, _ = stored.read([hit.doc_id for hit in near.hits])
            towards = (1 - share) * vectors[number] + share * rows.mean(axis=0)
            moved[number] = towards / np.linalg.norm(towards)
        return moved

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """What a search may set beside filters; None where the engine takes neither."""
        return getattr(self.engine, "parameters", None)

    def with_options(self, options: SearchOptions) -> HybridIndex:
        """The same index searched by the engine alone, which knows fields; vectors know none."""
        choice = self.choice.model_copy(update={"by": "bm25"})
        engine = searched_with(self.engine, options)
        return HybridIndex(engine, choice, self._open_vectors, self._load_encoder)

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The texts, in the order asked for."""
        return self.engine.fetch(doc_ids)

    def signals(self, doc_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Numbers and dates of these documents, by field, as the engine has them."""
        return signals_of(self.engine, doc_ids)

    def close(self) -> None:
        """Let go of the engine's files and connections."""
        close = getattr(self.engine, "close", None)
        if close is not None:
            close()


def open_first_stage(
    folder: Path,
    by: By | None,
    load_encoder: Callable[[Path], QueryEncoder],
) -> Index:
    """The index of a folder, searched `by` words, vectors or both.

    Without `by`, as the index was tuned to be; where it was not, hybrid if it has vectors.
    `load_encoder` opens the ranker in the folder that encodes queries.
    """
    engine = open_index(folder)
    if not has_vectors(folder):
        if by in ("vectors", "hybrid"):
            raise _no_vectors(folder)
        return engine
    choice = read_choice(folder)
    index = HybridIndex(
        engine,
        choice.model_copy(update={"by": by or choice.by}),
        lambda: open_vectors(folder, engine),
        lambda: load_encoder(folder / FOLDER / ENCODER),
    )
    index.warm_up()
    return index


def first_stage_files(folder: Path) -> list[Path]:
    """The small files that change whenever an index folder is to be opened anew."""
    return [folder / CARD, folder / FOLDER / VECTOR_CARD, folder / FOLDER / _CHOICE]


def open_vectors(folder: Path, engine: Engine | Index) -> VectorSearch:
    """The vectors of an index; raises IndexProblem where it has none, or those of other texts."""
    if not has_vectors(folder):
        raise _no_vectors(folder)
    card = read_vector_card(folder / FOLDER)
    if card.stored == "cluster":
        on_cluster: Any = engine
        found: VectorSearch = on_cluster.vector_search(card)
        return found
    _refuse_other_documents(folder, card, engine)
    return DocumentVectors(folder)


def open_verified(folder: Path) -> Index:
    """The engine of an index folder, after reading all that the folder holds.

    Raises IndexProblem where that is not as it was made.
    """
    engine = open_index(folder)
    engine.verify()
    if has_vectors(folder):
        card = read_vector_card(folder / FOLDER)
        if card.stored == "folder":
            _refuse_other_documents(folder, card, engine)
        verify_vectors(folder / FOLDER)
        read_choice(folder)
    return engine


def _refuse_other_documents(folder: Path, card: VectorCard, engine: Engine | Index) -> None:
    if card.corpus != engine.card.fingerprint:
        raise IndexProblem(
            f"the vectors in {folder} are of other documents than its index; make them anew: "
            f"secondlook index CORPUS {folder} --vectors RANKER"
        )


def _no_vectors(folder: Path) -> IndexProblem:
    return IndexProblem(
        f"{folder} has no vectors; add them with: secondlook index CORPUS {folder} --vectors RANKER"
    )


def read_choice(folder: Path) -> FirstStageChoice:
    """What the index was tuned to; reciprocal rank fusion where it was not."""
    path = folder / FOLDER / _CHOICE
    if not path.is_file():
        return FirstStageChoice()
    try:
        return FirstStageChoice.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, ValidationError, UnknownName) as error:
        raise IndexProblem(
            f"{path} cannot be read ({error}); tune the index again: secondlook fuse index {folder}"
        ) from error


def write_choice(folder: Path, choice: FirstStageChoice) -> None:
    """Keep it with the index's vectors."""
    write_at_once(folder / FOLDER / _CHOICE, choice.model_dump_json(indent=2) + "\n")
