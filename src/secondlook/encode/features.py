"""What the networks read: the same numbers in training, evaluation and serving."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """One encoded pair, not padded."""

    ids: NDArray[np.int32]  # [tokens]
    segments: NDArray[
        np.int32
    ]  # [tokens], as the base tells query (0) and document from each other
    words: NDArray[np.int32]  # [tokens], the word each sub-token belongs to: 0, 1, … along the pair
    first: int
    """How many tokens belong to the first part (the query with its special tokens)."""
    cut: int
    """How many of the document's tokens did not fit and were left out."""
    cut_query: int = 0
    """How many of the query's tokens were beyond its limit and were left out."""

    def __len__(self) -> int:
        return len(self.ids)


_STEP = 8


def padded(length: int, limit: int | None) -> int:
    """The length to pad a batch to: the next multiple of eight, but no more than `limit`.

    Engines, and torch on a CPU, prepare anew for every new shape and keep what they prepared, which
    costs more time and memory than the padding. Where no limit is known, the length itself.
    """
    return length if limit is None else max(length, min(ceil(length / _STEP) * _STEP, limit))


def collate(
    features: Sequence[Features], pad_id: int, limit: int | None = None
) -> dict[str, NDArray[np.int64]]:
    """The pairs side by side, padded on the right, under the names the networks take.

    `input_ids`, `attention_mask`, `token_type_ids` and `words` are [pairs, length], where length is
    that of the longest, `padded` within what the network has positions for; `first` is [pairs].
    Padding has mask 0, segment 0 and word -1, so that it never continues a word.
    """
    shape = len(features), padded(max(map(len, features), default=0), limit)
    batch = {
        "input_ids": np.full(shape, pad_id, np.int64),
        "attention_mask": np.zeros(shape, np.int64),
        "token_type_ids": np.zeros(shape, np.int64),
        "words": np.full(shape, -1, np.int64),
        "first": np.array([one.first for one in features], np.int64),
    }
    ids, mask, segments, words, _ = batch.values()
    for row, one in enumerate(features):
        length = len(one)
        ids[row, :length] = one.ids
        mask[row, :length] = 1
        segments[row, :length] = one.segments
        words[row, :length] = one.words
    return batch
