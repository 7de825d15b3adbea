"""What the networks read: the same numbers in training, evaluation and serving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Features:
    """One encoded pair, not padded."""

    ids: NDArray[np.int32]  # [tokens]
    segments: NDArray[np.int32]  # [tokens], 0 for the query's side and 1 for the document's
    words: NDArray[np.int32]  # [tokens], the index of the word each sub-token belongs to
    first: int
    """How many tokens belong to the first part (the query with its special tokens)."""
    cut: int
    """How many of the document's tokens did not fit and were left out."""

    def __len__(self) -> int:
        return len(self.ids)
