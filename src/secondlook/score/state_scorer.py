"""Re-ranking from stored states: the query's lower layers once, then the upper ones for each pair.

A document costs the layers that read both texts, not those that read it alone.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from secondlook.encode.features import padded
from secondlook.model.checkpoint import open_checkpoint
from secondlook.score.batching import batches
from secondlook.score.scored import Scored
from secondlook.score.states import StateEncoder, TextStates, refuse_without_states, torch_layers
from secondlook.score.text_encoder import open_part

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.score.text_encoder import PartBackend
    from secondlook.types import Pair

_AT_ONCE = 32
"""Pairs between two looks at the clock, where there is a deadline."""


class StoredStates(Protocol):
    """Where document states are kept."""

    @property
    def ranker(self) -> Path:
        """The folder of the ranker that made them."""
        ...

    def read(
        self, doc_ids: Sequence[str]
    ) -> Sequence[tuple[NDArray[np.floating], NDArray[np.integer]]]:
        """The states and the word numbers of each document; raises MissingDocument."""
        ...


class _Pair(NamedTuple):
    query: TextStates
    document: TextStates

    @property
    def length(self) -> int:
        return len(self.query.rows) + len(self.document.rows)


class StateScorer:
    """Gives the scores of a ranker with some separate layers, without reading a document.

    `encoder` makes the states of queries, `upper` makes scores of the states of both texts.
    """

    scores_from: Literal["states"] = "states"
    reads_texts = False

    def __init__(self, encoder: StateEncoder, upper: PartBackend, stored: StoredStates) -> None:
        self._encoder, self._upper, self._stored = encoder, upper, stored
        self._limit = encoder.settings.encode.longest_pair
        """Of tokens: each of the two texts was cut to fit alone."""
        self._pool = ThreadPoolExecutor(upper.workers, thread_name_prefix="states")

    @classmethod
    def load(cls, stored: StoredStates) -> StateScorer:
        """By the graphs of the ranker that made the states, or else by torch."""
        checkpoint = open_checkpoint(stored.ranker)
        refuse_without_states(checkpoint)
        lower: PartBackend | None = open_part(checkpoint, "lower", one_at_a_time=True)
        upper: PartBackend | None = open_part(checkpoint, "upper")
        if lower is None or upper is None:
            lower, upper = torch_layers(stored.ranker)
        return cls(StateEncoder(checkpoint, lower), upper, stored)

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """One raw score per pair, in the order given."""
        return self._score(self._states(pairs))

    def score_until(self, pairs: Sequence[Pair], until: float) -> NDArray[np.float32]:
        """The raw scores of the first pairs, as many as can be had until then (`monotonic`)."""
        states, parts, slowest = self._states(pairs), [np.empty(0, np.float32)], 0.0
        for start in range(0, len(states), _AT_ONCE):
            began = monotonic()
            if began + slowest > until:
                break
            parts.append(self._score(states[start : start + _AT_ONCE]))
            slowest = max(slowest, monotonic() - began)
        return np.concatenate(parts)

    def scored(self, pairs: Sequence[Pair]) -> Scored:
        """The same as `Ranker.scored`, by the documents' ids; what is cut is not known here."""
        return Scored.of(self.score(pairs), [1] * len(pairs), None)

    def scored_windows(self, pairs: Sequence[Pair]) -> Scored:
        """The same: documents have one window."""
        return self.scored(pairs)

    def _states(self, pairs: Sequence[Pair]) -> list[_Pair]:
        """The states of both texts of each pair; those of a query are made once."""
        if not pairs:
            return []
        queries = list(dict.fromkeys(query for query, _ in pairs))
        made = dict(zip(queries, self._encoder.queries(queries), strict=True))
        kept = self._stored.read([document.id for _, document in pairs])
        return [
            _Pair(made[query], TextStates(*document))
            for (query, _), document in zip(pairs, kept, strict=True)
        ]

    def _score(self, pairs: Sequence[_Pair]) -> NDArray[np.float32]:
        scores = np.empty(len(pairs), np.float32)
        lengths = [padded(one.length, self._limit) for one in pairs]

        def score(batch: NDArray[np.intp]) -> None:
            side_by_side = _collate([pairs[place] for place in batch], self._limit)
            scores[batch] = self._upper.run(side_by_side)

        # a list, so that a worker's exception is raised here
        list(self._pool.map(score, batches(lengths, self._upper.token_budget)))
        return scores


def _collate(pairs: Sequence[_Pair], limit: int) -> dict[str, NDArray[Any]]:
    """The states of both texts side by side, padded on the right, as the upper layers take them."""
    shape = len(pairs), padded(max(one.length for one in pairs), limit)
    states = np.zeros((*shape, pairs[0].query.rows.shape[1]), np.float32)
    mask, words = np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    first = np.array([len(one.query.rows) for one in pairs], np.int64)
    for row, (query, document) in enumerate(pairs):
        middle, end = len(query.rows), len(query.rows) + len(document.rows)
        states[row, :middle], states[row, middle:end] = query.rows, document.rows
        mask[row, :end] = 1
        words[row, :middle] = query.words
        words[row, middle:end] = document.words.astype(np.int64) + query.words[-1] + 1
    return {"states": states, "attention_mask": mask, "first": first, "words": words}
