"""A long document as overlapping windows, and the scores of its windows as one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from secondlook.encode.tokens import in_batches, well_formed, word_beginnings, word_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from secondlook.encode.settings import WindowSettings
    from secondlook.types import Document

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a document, which is a document too: same id, same title, part of the text."""

    document: Document
    start: int
    """Where its text begins in the whole, in characters; `end` is where it ends."""
    end: int


def split(
    documents: Sequence[Document], settings: WindowSettings, tokenizer: Tokenizer
) -> list[list[Window]]:
    """Each document's windows, in order; one at least, and no word left out.

    A window has `length` words, or as many words as have `length` tokens, and the next begins
    `stride` later. The last one ends with the document and reaches back as far as its length
    allows, so that it is no poorer than the others. The title is not counted: it travels with
    every window. Words are runs between white space; with `unit = "tokens"` they are the
    tokenizer's, which must not truncate, and a word of more than `length` tokens is a window.
    """
    texts = [document.text for document in documents]
    words = _words(texts) if settings.unit == "words" else _tokenised(texts, tokenizer)
    windows = []
    for document, (spans, sizes) in zip(documents, words, strict=True):
        if sizes.sum() <= settings.length:
            windows.append([Window(document, 0, len(document.text))])
            continue
        places = _places(sizes, settings.length, settings.stride)
        windows.append([_window(document, spans[a][0], spans[b - 1][1]) for a, b in places])
    return windows


def pool(
    scores: NDArray[np.float32], counts: Sequence[int], settings: WindowSettings
) -> NDArray[np.float32]:
    """One score per document from those of its windows, which stand one document after the other.

    `counts` says how many windows each document has. With pooling `top`, a document of fewer
    windows than weights is scored by the first weights, scaled up to the sum of all: its score
    stands on the same scale as the others'.
    """
    if not len(counts):
        return np.empty(0, np.float32)
    weights, scale = pooling_weights(scores, counts, settings)
    sizes = np.asarray(counts, np.intp)
    pooled = np.add.reduceat(scores * weights, np.cumsum(sizes) - sizes) * scale
    return pooled.astype(np.float32)


def pooling_weights(
    scores: NDArray[np.float32], counts: Sequence[int], settings: WindowSettings
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each window's score counts, and what each document's sum of them is multiplied by."""
    sizes = np.asarray(counts, np.intp)
    assert sizes.all(), "a document has one window at least"
    assert sizes.sum() == len(scores), "a score for each window"
    starts = np.cumsum(sizes) - sizes
    if settings.pooling == "mean":
        return np.ones(len(scores)), 1 / sizes
    documents = np.repeat(np.arange(len(sizes)), sizes)
    order = np.arange(len(scores))
    if settings.pooling != "first":
        order = np.lexsort((-scores, documents))  # the best first, document by document
    given = settings.weights if settings.pooling == "top" else (1.0,)
    by_rank = np.zeros(max(len(given), int(sizes.max())))
    by_rank[: len(given)] = given
    ranked = by_rank[np.arange(len(scores)) - starts[documents]]
    weights = np.empty(len(scores))
    weights[order] = ranked
    return weights, sum(given) / np.add.reduceat(ranked, starts)


def _window(document: Document, start: int, end: int) -> Window:
    return Window(replace(document, text=document.text[start:end]), start, end)


def _words(texts: Sequence[str]) -> Iterator[tuple[list[tuple[int, int]], NDArray[np.intp]]]:
    """For each text, where its words stand, and the size 1 of each."""
    for text in texts:
        spans = [match.span() for match in _WORD.finditer(text)]
        yield spans, np.ones(len(spans), np.intp)


def _tokenised(
    texts: Sequence[str], tokenizer: Tokenizer
) -> Iterator[tuple[list[tuple[int, int]], NDArray[np.intp]]]:
    """For each text, where the tokenizer's words stand, and how many tokens each has."""
    for some in in_batches([well_formed(text) for text in texts]):
        for encoding in tokenizer.encode_batch(some, add_special_tokens=False):
            begins = word_beginnings(encoding.word_ids)
            sizes = np.diff(np.append(np.flatnonzero(begins), len(begins)))
            yield word_spans(encoding, begins), sizes


def _places(sizes: NDArray[np.intp], length: int, stride: int) -> list[tuple[int, int]]:
    """First word and end of each window over words of these sizes."""
    ends = np.cumsum(sizes)
    starts = ends - sizes
    places = []
    first = 0
    while True:
        end = max(int(np.searchsorted(ends, starts[first] + length, side="right")), first + 1)
        if end == len(sizes):
            break
        places.append((first, end))
        later = int(np.searchsorted(starts, starts[first] + stride))
        first = min(max(later, first + 1), end)
    earliest = int(np.searchsorted(starts, ends[-1] - length))
    return [*places, (min(earliest, first), len(sizes))]
