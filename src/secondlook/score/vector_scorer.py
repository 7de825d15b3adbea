"""Re-ranking from stored vectors: one encoding of the query, then dot products.

`stored_scorer` finds out whether what an index stores, vectors or states, gives a ranker's scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from secondlook.model.checkpoint import open_checkpoint
from secondlook.remote.address import is_remote
from secondlook.score.scored import Scored
from secondlook.score.state_scorer import StateScorer
from secondlook.score.states import scores_by_states
from secondlook.score.vectors import scores_by_vectors, vector_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.encode.settings import WindowSettings
    from secondlook.score.state_scorer import StoredStates
    from secondlook.score.vectors import VectorEncoder
    from secondlook.types import Pair, Query


class Cosines(Protocol):
    """The cosines of one query with documents."""

    @property
    def rows(self) -> NDArray[np.float32]:
        """One for each window, document after document."""
        ...

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many windows each document has."""
        ...


class StoredVectors(Protocol):
    """Where document vectors are kept."""

    def similarities(
        self, vectors: NDArray[np.float32], doc_ids: Sequence[Sequence[str]]
    ) -> Sequence[Cosines]:
        """The cosines of each query's vector with its documents; raises MissingDocument."""
        ...


@runtime_checkable
class KeepsStates(Protocol):
    """Where states of documents may be kept beside their vectors."""

    @property
    def states(self) -> StoredStates | None:
        """None where there are none."""
        ...


class StoredScorer(Protocol):
    """Gives a ranker's scores from what an index stores."""

    @property
    def scores_from(self) -> Literal["vectors", "states"]:
        """What that is."""
        ...

    @property
    def reads_texts(self) -> bool:
        """Whether documents are to be fetched all the same, to see that they are still there."""
        ...

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """One raw score per pair, in the order given."""
        ...

    def scored(self, pairs: Sequence[Pair]) -> Scored:
        """The same as `Ranker.scored`, by the documents' ids; what is cut is not known here."""
        ...

    def scored_windows(self, pairs: Sequence[Pair]) -> Scored:
        """The same, with every window's raw score, whatever the pooling."""
        ...


@dataclass(frozen=True, slots=True)
class StoredScoring:
    """How a ranker can be scored with from what an index stores, as its folder is now."""

    fingerprint: str
    scores_from: Literal["vectors", "states"]
    windows: WindowSettings | None

    @classmethod
    def of(cls, source: str | Path) -> StoredScoring | None:
        """None where the ranker reads both texts, or runs elsewhere."""
        if is_remote(source):
            return None
        checkpoint = open_checkpoint(source)
        by_vectors = scores_by_vectors(checkpoint)
        if not by_vectors and not scores_by_states(checkpoint):
            return None
        return cls(
            vector_fingerprint(checkpoint),
            "vectors" if by_vectors else "states",
            checkpoint.settings.encode.windows,
        )


def stored_scorer(
    ranker: StoredScoring | None,
    encoder: Callable[[], VectorEncoder],
    stored: StoredVectors,
    made_by: str,
    *,
    reads_texts: bool = False,
) -> VectorScorer | StateScorer | None:
    """What scores as this ranker does, from vectors or states `made_by` a ranker (its fingerprint).

    None where they are another's, or where the ranker needs states and there are none.
    `reads_texts` where a document may have left the index and its vector stayed.
    """
    if ranker is None or ranker.fingerprint != made_by:
        return None
    if ranker.scores_from == "vectors":
        return VectorScorer(encoder(), stored, ranker.windows, reads_texts=reads_texts)
    states = stored.states if isinstance(stored, KeepsStates) else None
    if states is None:
        return None
    if vector_fingerprint(open_checkpoint(states.ranker)) != made_by:
        return None  # the folder was replaced since the states were opened
    return StateScorer.load(states)


class _Windows(NamedTuple):
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]


class VectorScorer:
    """Gives the scores of a ranker whose layers are all separate, without reading a document.

    `windows` says how the ranker pools the scores of a document's windows.
    """

    scores_from: Literal["vectors"] = "vectors"

    def __init__(
        self,
        encoder: VectorEncoder,
        stored: StoredVectors,
        windows: WindowSettings | None,
        *,
        reads_texts: bool = False,
    ) -> None:
        self._encoder, self._stored, self._windows = encoder, stored, windows
        self.reads_texts = reads_texts
        """Whether documents are to be fetched all the same, to see that they are still there."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """One raw score per pair, in the order given."""
        return self.scored(pairs).scores

    def scored(self, pairs: Sequence[Pair]) -> Scored:
        """The same as `Ranker.scored`, by the documents' ids; what is cut is not known here."""
        windows: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(pairs)
        for places, found in self._by_query(pairs):
            starts = np.cumsum(found.counts) - found.counts
            for place, own in zip(places, np.split(found.scores, starts[1:]), strict=True):
                windows[place] = own
        every = np.concatenate([np.empty(0, np.float32), *windows])
        return Scored.of(every, [len(own) for own in windows], self._windows)

    def scored_windows(self, pairs: Sequence[Pair]) -> Scored:
        """The same: the vectors of all windows are stored."""
        return self.scored(pairs)

    def _by_query(self, pairs: Sequence[Pair]) -> list[tuple[list[int], _Windows]]:
        """For each distinct query, which pairs are its own, and the scores of their windows."""
        places: dict[Query, list[int]] = {}
        for place, (query, _) in enumerate(pairs):
            places.setdefault(query, []).append(place)
        if not places:
            return []
        made = self._encoder.queries(list(places))
        doc_ids = [[pairs[place][1].id for place in own] for own in places.values()]
        found = self._stored.similarities(made.vectors, doc_ids)
        return [
            (own, _Windows(slope * cosines.rows + intercept, cosines.counts))
            for own, cosines, slope, intercept in zip(
                places.values(), found, made.slopes, made.intercepts, strict=True
            )
        ]
