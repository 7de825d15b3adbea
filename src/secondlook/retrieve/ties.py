"""Which of the documents that tie for the last places are hits."""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING

import numpy as np

from secondlook.types import Hit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def hits_at(
    best: NDArray[np.intp],
    scores: NDArray[np.float32],
    ids_at: Callable[[NDArray[np.intp]], list[str]],
) -> list[Hit]:
    """As many hits as `best` has places in `scores`, in no order.

    Of documents that tie for the last of them, those whose ids a Ranking puts first: which of them
    partitioning leaves there is chance, and the best k are to begin the best of more.
    """
    if not len(best):
        return []
    last = scores[best].min()
    above, tied = best[scores[best] > last], np.flatnonzero(scores == last)
    hits = list(map(Hit, ids_at(above), scores[above].tolist()))
    chosen = nlargest(len(best) - len(above), ids_at(tied))
    return hits + [Hit(doc_id, float(last)) for doc_id in chosen]
