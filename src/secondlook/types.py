"""The nouns every room speaks in, and the verbs as Protocols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from secondlook.errors import InvalidRanking

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked. `type` is its answer type (location, numeric, …) where the data has one."""

    id: str
    text: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """What can be found: a passage or a whole document.

    `title` and `text` are what people and the re-ranking see. The other two are for the first
    stage alone: an engine finds the document by them, and its `fetch` gives it back without them.
    """

    id: str
    text: str
    title: str = ""
    queries: tuple[str, ...] = ()
    """Queries it may answer (doc2query), indexed behind title and text."""
    weights: Mapping[str, int] | None = field(default=None, hash=False)
    """Its words with the frequency each is indexed by (DeepCT), in place of all the rest."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and the score an engine or a model gave it."""

    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of one query: best first, no document twice.

    Equal scores stand as trec_eval breaks ties: by document id, descending. The constructor
    refuses anything else; `Ranking.of` puts hits into that order.
    """

    query_id: str
    hits: tuple[Hit, ...]

    def __post_init__(self) -> None:
        for above, below in pairwise(self.hits):
            if above.score > below.score:
                continue
            if above.score != below.score:  # below is better, or one of them is no number
                raise InvalidRanking(
                    f"query {self.query_id!r}: {above.doc_id!r} ({above.score}) stands above "
                    f"{below.doc_id!r} ({below.score}); build it with Ranking.of, which sorts"
                )
            if above.doc_id < below.doc_id:
                raise InvalidRanking(
                    f"query {self.query_id!r}: {above.doc_id!r} and {below.doc_id!r} tie at "
                    f"{above.score} and must stand by id, descending; build it with Ranking.of"
                )
        if self.hits and isnan(self.hits[0].score):
            raise InvalidRanking(f"query {self.query_id!r}: a score is not a number")
        if len({hit.doc_id for hit in self.hits}) < len(self.hits):
            raise InvalidRanking(
                f"query {self.query_id!r} ranks a document twice; keep only its best hit"
            )

    @classmethod
    def of(cls, query_id: str, hits: Iterable[Hit]) -> Ranking:
        """The same hits in the order trec_eval would read them."""
        ordered = sorted(hits, key=lambda hit: (hit.score, hit.doc_id), reverse=True)
        return cls(query_id, tuple(ordered))

    def top(self, k: int) -> Ranking:
        """The best `k` hits."""
        return Ranking(self.query_id, self.hits[:k])


Qrels = Mapping[str, Mapping[str, int]]
"""Judgments: query id → document id → grade."""

Pair = tuple[Query, Document]


@runtime_checkable
class Corpus(Protocol):
    """Where texts are kept."""

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents in the order asked for; raises MissingDocument for an unknown id."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """The first stage."""

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """One ranking per query, in the order asked, each of at most `k` hits.

        A query that matches nothing gets a ranking without hits.
        """
        ...


@runtime_checkable
class Scorer(Protocol):
    """The re-ranking."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """One score per pair, in the order given; higher is more relevant."""
        ...
