"""A scorer without a network: the smallest thing that keeps the Scorer's promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.types import Pair


class WordOverlap:
    """Scores by the share of the query's words that the document holds. For tests and examples."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """One score per pair, from 0 to 1."""
        return np.array(
            [_share(query.text, document.text) for query, document in pairs], np.float32
        )


def _share(query: str, text: str) -> float:
    wanted = set(query.lower().split())
    return len(wanted & set(text.lower().split())) / max(1, len(wanted))
