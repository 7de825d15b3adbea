"""Scores from the vectors or states of the index, for rankers that made them."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import numpy as np

from secondlook.errors import CheckpointProblem
from secondlook.retrieve.hybrid import HybridIndex
from secondlook.retrieve.vectors import pooled
from secondlook.score.state_scorer import StateScorer
from secondlook.score.vector_scorer import StoredScoring, stored_scorer
from secondlook.score.vectors import VectorEncoder
from secondlook.serve.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.retrieve import Index
    from secondlook.score.ranker import Ranker
    from secondlook.score.scored import Scored
    from secondlook.score.vector_scorer import VectorScorer
    from secondlook.serve.index import ServedIndex
    from secondlook.types import Document, Query

    _Stored = VectorScorer | StateScorer


class VectorScoring:
    """Knows which rankers made what the index that is open now stores. Threads may share it."""

    def __init__(self, index: ServedIndex) -> None:
        self._index = index
        self._finding = threading.Lock()
        """Loading graphs takes a second: of requests that come together, one does it."""
        self._known: dict[str, tuple[Index, Ranker, _Stored | None]] = {}
        self._loaded: WeakKeyDictionary[Ranker, StoredScoring | None] = WeakKeyDictionary()

    def loaded(self, source: str, ranker: Ranker) -> None:
        """Note what a ranker is when it is loaded: its folder may soon hold another."""
        if ranker.settings.warm is not None:
            with suppress(CheckpointProblem):  # it was given by a program, and has no folder
                self._loaded[ranker] = StoredScoring.of(source)

    def outcome(
        self,
        source: str,
        ranker: Ranker,
        query: Query,
        documents: Sequence[Document],
        until: float,
    ) -> tuple[Outcome, Literal["vectors", "states"]] | None:
        """The documents of the index, scored, and from what; None where it stores another's.

        None too where a text has other windows than its stored vectors: it was changed since.
        From states, as many of the first documents as can be until the deadline (`monotonic`).
        Raises MissingDocument where the index was replaced since they were found.
        """

        def score(index: Index) -> tuple[Outcome, Literal["vectors", "states"]] | None:
            scorer = self._scorer(index, source, ranker)
            if scorer is None:
                return None
            pairs = [(query, document) for document in documents]
            if isinstance(scorer, StateScorer):
                return _first_scored(scorer.score_until(pairs, until), documents), "states"
            outcome = _outcome(scorer.scored(pairs), ranker, documents)
            return None if outcome is None else (outcome, "vectors")

        return self._index.use(score)

    def nearest_first(self, query: Query, documents: Sequence[Document]) -> list[int]:
        """Places of the documents by how near their vectors are to the query's.

        Empty where the index has no vectors; raises MissingDocument likewise.
        """

        def order(index: Index) -> list[int]:
            if not isinstance(index, HybridIndex):
                return []
            vectors = index.encoder.query_vectors([query])
            (found,) = index.vectors.similarities(vectors, [[one.id for one in documents]])
            near = pooled(found, index.vectors.card.windows)
            return np.argsort(-near, kind="stable").tolist()  # type: ignore[no-any-return]

        return self._index.use(order)

    def _scorer(self, index: Index, source: str, ranker: Ranker) -> _Stored | None:
        """Found out once for each index and ranker: opening states takes a while."""
        with self._finding:
            known = self._known.get(source)
            if known is None or known[0] is not index or known[1] is not ranker:
                known = self._known[source] = index, ranker, self._found(index, ranker)
        return known[2]

    def _found(self, index: Index, ranker: Ranker) -> _Stored | None:
        if not isinstance(index, HybridIndex):
            return None
        stored = index.vectors

        def encoder() -> VectorEncoder:
            assert isinstance(index, HybridIndex)
            assert isinstance(index.encoder, VectorEncoder)
            return index.encoder

        made_by = stored.card.fingerprint
        return stored_scorer(self._loaded.get(ranker), encoder, stored, made_by)


def _outcome(scored: Scored, ranker: Ranker, documents: Sequence[Document]) -> Outcome | None:
    """None where a text was changed since it was encoded, so that its best window is not known.

    That happens in an attached index, which others write to. A text that was changed and has as
    many windows as before is not noticed.
    """
    if ranker.settings.encode.windows is None:
        passages, windows = [(0, len(one.text)) for one in documents], [1] * len(documents)
    else:
        parts = ranker.encoder.windows(documents)
        if [len(own) for own in parts] != [len(own) for own in scored.windows]:
            return None
        chosen = [own[best] for own, best in zip(parts, scored.best.tolist(), strict=True)]
        passages, windows = [(one.start, one.end) for one in chosen], [len(own) for own in parts]
    return Outcome(
        scored=np.ones(len(documents), np.bool_),
        scores=scored.scores,
        cut=scored.cut,
        cut_query=scored.cut_query,
        passages=passages,
        windows=windows,
        tokens=np.zeros(len(documents), np.intp),
    )


def _first_scored(scores: NDArray[np.float32], documents: Sequence[Document]) -> Outcome:
    """Of documents that are read whole: the scores of the first ones, all or fewer."""
    nothing = np.zeros(len(documents), np.intp)
    return Outcome(
        scored=np.arange(len(documents)) < len(scores),
        scores=np.pad(scores, (0, len(documents) - len(scores))),
        cut=nothing,
        cut_query=nothing,
        passages=[(0, len(one.text)) for one in documents],
        windows=[1] * len(documents),
        tokens=nothing,
    ).first_scored()
