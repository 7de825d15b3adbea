"""Scores of pairs, made of those of their documents' windows, and what they did not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from secondlook.encode.windows import pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.encode.settings import WindowSettings


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scores, and what they did not see."""

    scores: NDArray[np.float32]  # [pairs]
    cut: NDArray[np.intp]  # [pairs], how many tokens of the document did not fit
    best: NDArray[np.intp]  # [pairs], which of the document's windows scored highest
    cut_query: NDArray[np.intp]  # [pairs], how many tokens of the query did not fit
    windows: list[NDArray[np.float32]]  # [pairs], the scores of each document's windows

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float32],  # [windows], one document after the other
        counts: Sequence[int],  # [pairs], how many windows each document has
        pooling: WindowSettings | None,
        cut: Sequence[int] | None = None,
        cut_query: Sequence[int] | None = None,
    ) -> Scored:
        """Pool the scores of windows; without `pooling`, a document is one window.

        Where pooling takes the first window only, that is the best. Without `cut`, what did not fit
        is not known, and counts as nothing.
        """
        nothing = np.zeros(len(counts), np.intp)
        windows = np.split(scores, np.cumsum(counts)[:-1]) if len(counts) else []
        best = nothing
        if pooling is not None:
            scores = pool(scores, counts, pooling)
            if pooling.pooling != "first":
                best = np.array([int(own.argmax()) for own in windows], np.intp)
        return cls(
            scores,
            nothing if cut is None else np.array(cut, np.intp),
            best,
            nothing if cut_query is None else np.array(cut_query, np.intp),
            windows,
        )
