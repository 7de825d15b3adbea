"""Scored texts best first, in the shape of sentence-transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class RankedText(TypedDict):
    """A document of `rank`, in the shape of sentence-transformers."""

    corpus_id: int
    score: float
    text: NotRequired[str]


def ranked_texts(
    scores: NDArray[np.floating],
    shown: NDArray[np.float32],
    texts: Sequence[str] | None,
    top_k: int | None,
) -> list[RankedText]:
    """Places best first by `scores`, equals in their order, each with the score that is shown."""
    ranked: list[RankedText] = []
    for place in np.argsort(-scores, kind="stable")[:top_k].tolist():
        one: RankedText = {"corpus_id": place, "score": float(shown[place])}
        if texts is not None:
            one["text"] = texts[place]
        ranked.append(one)
    return ranked
