"""Scored texts best first, in the shape of sentence-transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np

from secondlook.errors import WrongArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class RankedText(TypedDict):
    """A document of `rank`, in the shape of sentence-transformers."""

    corpus_id: int
    score: float
    text: NotRequired[str]


def check_first_stage_scores(scores: Sequence[float] | None, documents: int) -> None:
    """Raise WrongArgument unless there are none, or a number for each document."""
    if scores is None:
        return
    if len(scores) != documents:
        raise WrongArgument(
            f"{len(scores):,} `first_stage_scores` for {documents:,} documents; give one for each, "
            "in their order"
        )
    if not np.isfinite(np.asarray(scores, np.float64)).all():
        raise WrongArgument(
            "one of `first_stage_scores` is infinite or no number; give a finite score for each "
            "document"
        )


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
