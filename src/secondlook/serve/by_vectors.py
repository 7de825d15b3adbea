"""Scores from the vectors of the index, for rankers that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from secondlook.retrieve.hybrid import HybridIndex
from secondlook.retrieve.vectors import pooled
from secondlook.score.vector_scorer import stored_scorer
from secondlook.score.vectors import VectorEncoder
from secondlook.serve.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.retrieve import Index
    from secondlook.score.ranker import Ranker, Scored
    from secondlook.score.vector_scorer import VectorScorer
    from secondlook.serve.index import ServedIndex
    from secondlook.types import Document, Query


class VectorScoring:
    """Knows which rankers made the vectors of the index that is open now. Threads may share it."""

    def __init__(self, index: ServedIndex) -> None:
        self._index = index
        self._known: dict[str, tuple[Index, Ranker, VectorScorer | None]] = {}

    def outcome(
        self, source: str, ranker: Ranker, query: Query, documents: Sequence[Document]
    ) -> Outcome | None:
        """The documents of the index, scored; None where its vectors are not this ranker's.

        Raises MissingDocument where the index was replaced since they were found.
        """

        def score(index: Index) -> Outcome | None:
            scorer = self._scorer(index, source, ranker)
            if scorer is None:
                return None
            scored = scorer.scored([(query, document) for document in documents])
            return _outcome(scored, ranker, documents)

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

    def _scorer(self, index: Index, source: str, ranker: Ranker) -> VectorScorer | None:
        """Found out once for each index and ranker: fingerprints take the reading of weights."""
        known = self._known.get(source)
        if known is not None and known[0] is index and known[1] is ranker:
            return known[2]
        scorer = None
        if isinstance(index, HybridIndex):
            stored = index.vectors

            def encoder() -> VectorEncoder:
                assert isinstance(index, HybridIndex)
                assert isinstance(index.encoder, VectorEncoder)
                return index.encoder

            scorer = stored_scorer(source, encoder, stored, stored.card.fingerprint)
        self._known[source] = index, ranker, scorer
        return scorer


def _outcome(scored: Scored, ranker: Ranker, documents: Sequence[Document]) -> Outcome:
    if ranker.settings.encode.windows is None:
        passages, windows = [(0, len(one.text)) for one in documents], [1] * len(documents)
    else:
        parts = ranker.encoder.windows(documents)
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
