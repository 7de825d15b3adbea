"""Which pairs are scored together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def batches(lengths: Sequence[int], token_budget: int) -> list[NDArray[np.intp]]:
    """The indices of the pairs of each batch, longest pairs first.

    A batch, padded to its longest pair, holds at most `token_budget` tokens; a pair that is longer
    than that stands alone. Pairs of like length meet, so little is padding, and the batch that
    needs the most memory comes first.
    """
    order = np.argsort(-np.asarray(lengths, np.intp), kind="stable")
    cut: list[NDArray[np.intp]] = []
    start = 0
    while start < len(order):
        size = max(1, token_budget // max(1, lengths[order[start]]))
        cut.append(order[start : start + size])
        start += size
    return cut
