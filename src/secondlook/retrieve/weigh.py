"""DeepCT's way from a document to what is indexed of it: words read, weighed, made frequencies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from secondlook.analyze import DEFAULT
from secondlook.analyze import analyzer as analyzer_of
from secondlook.encode.features import Features
from secondlook.encode.template import Template
from secondlook.encode.tokens import in_batches, well_formed, word_beginnings, word_spans
from secondlook.recipe import Settings
from secondlook.retrieve.contents import contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from secondlook.types import Document

    Weigh = Callable[[Sequence[Features]], list[NDArray[np.float32]]]
    """The network: encoded parts in, the weight of each of their words out."""


class FrequencySettings(Settings):
    """How a weight becomes a whole number: round(scale · √weight), or round(scale · weight).

    Halves are rounded up, and a word whose frequency is 0 is not indexed. A root lifts the small
    weights: words that few queries hold keep a say. BM25 sees only the ratio of frequencies to its
    k1, so an index of weighed documents wants a k1 on the scale of its frequencies.
    """

    scale: float = Field(100.0, gt=0)
    shape: Literal["root", "linear"] = "root"

    def frequency(self, weight: float) -> int:
        """0 for a weight below zero, which a regression may give."""
        above = max(weight, 0.0)
        return floor(self.scale * (sqrt(above) if self.shape == "root" else above) + 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """As much of a document as the network reads at once."""

    features: Features
    """Its `words` say which indexed word a token belongs to; -1 is none."""
    terms: tuple[str, ...]
    """Of each word, the term the engine indexes it by."""
    spelled: tuple[str, ...]
    """Each word as it stands in the text."""


class PartReader:
    """Reads documents as words to weigh: those that the engine indexes, no stop words.

    Tokens make up words by the same groups as STRM's; where the engine takes several of these for
    one word ("o'clock"), they are one here. Nothing is left out: a document that is longer than
    `max_length` tokens is cut between words.
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int, analyzer: str = DEFAULT) -> None:
        self._tokenizer = tokenizer
        self._template = Template.read(tokenizer, "warm")
        self._room = max_length - len(self._template.opening) - len(self._template.after)
        self._analyzer = analyzer_of(analyzer)

    def read(self, documents: Sequence[Document]) -> list[list[Part]]:
        """The parts of each document; none of one without a word to index."""
        texts = [well_formed(contents(replace(one, weights=None))) for one in documents]
        read = []
        for some in in_batches(texts):
            encodings = self._tokenizer.encode_batch(some, add_special_tokens=False)
            for text, encoding in zip(some, encodings, strict=True):
                read.append(list(self._parts(text, encoding)))
        return read

    def _parts(self, text: str, encoding: Encoding) -> Iterator[Part]:
        spans = list(self._analyzer.spans(text))
        ids = np.array(encoding.ids, np.int32)
        if not spans or not len(ids):
            return
        begins = word_beginnings(encoding.word_ids)
        owner = _owners(word_spans(encoding, begins), spans)[np.cumsum(begins) - 1]  # [tokens]
        for start, end in pairwise(self._cuts(begins, owner)):
            own = owner[start:end]
            indexed, words = np.unique(own[own >= 0], return_inverse=True)
            if not len(indexed):
                continue
            of_word = np.full(end - start, -1, np.int32)
            of_word[own >= 0] = words
            yield Part(
                self._features(ids[start:end], of_word),
                tuple(spans[word][2] for word in indexed),
                tuple(text[spans[word][0] : spans[word][1]] for word in indexed),
            )

    def _cuts(self, begins: NDArray[np.bool_], owner: NDArray[np.intp]) -> list[int]:
        """Where parts begin and end; inside a word only if it is longer than a part."""
        inside = np.zeros(len(owner), np.bool_)
        inside[1:] = ~begins[1:] | ((owner[1:] >= 0) & (owner[1:] == owner[:-1]))
        allowed = np.append(np.flatnonzero(~inside), len(owner))
        cuts = [0]
        while cuts[-1] < len(owner):
            last = int(allowed[np.searchsorted(allowed, cuts[-1] + self._room, side="right") - 1])
            cuts.append(last if last > cuts[-1] else min(cuts[-1] + self._room, len(owner)))
        return cuts

    def _features(self, ids: NDArray[np.int32], words: NDArray[np.int32]) -> Features:
        opening, closing = self._template.opening.ids, self._template.after.ids
        none_before, none_after = np.full(len(opening), -1), np.full(len(closing), -1)
        whole = np.concatenate([opening, ids, closing])
        return Features(
            whole,
            np.zeros_like(whole),
            np.concatenate([none_before, words, none_after]).astype(np.int32),
            first=0,
            cut=0,
        )


def _owners(
    words: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int, str]]
) -> NDArray[np.intp]:
    """For each of the tokenizer's words, the indexed word it overlaps; -1 for none."""
    starts = np.array([start for start, _, _ in spans])
    ends = np.array([end for _, end, _ in spans])
    begin, end = np.array(words).T
    last = np.searchsorted(starts, end, side="left") - 1  # the last that begins before its end
    return np.where((last >= 0) & (ends[last] > begin), last, -1)


class Weigher:
    """Gives documents the frequencies they are to be indexed by."""

    def __init__(self, reader: PartReader, weigh: Weigh, settings: FrequencySettings) -> None:
        self._reader, self._weigh, self._settings = reader, weigh, settings

    def weighed(self, documents: Sequence[Document]) -> list[Document]:
        """The same documents, with weights; what they were before is as it was.

        Of a word that comes more than once, in whatever form, the largest weight counts: the
        frequency stands for all its mentions.
        """
        parts = self._reader.read(documents)
        made = iter(self._weigh([part.features for own in parts for part in own]))
        weighed = []
        for document, own in zip(documents, parts, strict=True):
            best: dict[str, tuple[str, float]] = {}
            for part in own:
                for term, word, weight in zip(part.terms, part.spelled, next(made), strict=True):
                    spelled, before = best.get(term, (word, 0.0))
                    best[term] = spelled, max(before, float(weight))
            found = {word: self._settings.frequency(weight) for word, weight in best.values()}
            kept = {word: times for word, times in found.items() if times}
            weighed.append(replace(document, weights=kept))
        return weighed
