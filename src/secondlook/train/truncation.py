"""How many of the training texts are longer than the ranker reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from secondlook.encode.encoder import Encoder
from secondlook.train.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from secondlook.encode.settings import EncodeSettings

T = TypeVar("T")

_QUERIES, _TEXTS = 64, 16
"""So many queries are looked at, evenly over all files, with so many texts each: that takes a
second or two."""


def texts_cut(tokenizer: Tokenizer, encode: EncodeSettings, files: Sequence[Path]) -> str | None:
    """How many texts are cut short and by how much, as a sentence; None if none is.

    A ranker that never reads the part of a text that answers learns from judgments which look
    wrong to it, and ranks worse than the first stage, which reads all of it.
    """
    if not files:
        return None
    groups = Groups(files)
    # types take a token or two, and would need the classifier
    encoder = Encoder(tokenizer, encode.model_copy(update={"query_types": False}))
    texts, lost = 0, []
    for group in _some(groups, _QUERIES):
        for windows in encoder.windows(_some(group.documents, _TEXTS)):
            features = encoder.encode([(group.query, window.document) for window in windows])
            texts += 1
            if tokens := sum(one.cut for one in features):
                lost.append(tokens)
    if not lost:
        return None
    return (
        f"{len(lost) / texts:.0%} of the training texts are longer than the ranker reads "
        f"(max_length = {encode.max_length}), and are cut short by {sum(lost) / len(lost):,.0f} "
        f"tokens on average"
    )


def _some(given: Sequence[T], most: int) -> list[T]:
    step = max(1, -(-len(given) // most))
    return [given[at] for at in range(0, len(given), step)]
