"""A corpus as sentences on the disk, and the examples that pre-training makes of them."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from secondlook.data.durable import write_at_once
from secondlook.data.fingerprint import Fingerprint
from secondlook.encode.features import Features
from secondlook.encode.tokens import Reader, Tokens, text_only, well_formed
from secondlook.errors import MalformedInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.random import Generator
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from secondlook.encode.template import Template
    from secondlook.types import Document

NO_NEXT = -100
"""The label of an example with one part: whether a second one follows it is not asked."""
_CARD = "sentences.json"
_DOCUMENTS_AT_ONCE = 256
_LONGEST_SENTENCE = 512  # tokens; a longer one is a table or a list


def split(text: str) -> list[str]:
    """The sentences of a text, in order, without the space around them."""
    try:
        from syntok import segmenter
    except ImportError as error:
        raise MissingExtra("train", "splitting a corpus into sentences") from error
    return [
        "".join(token.spacing + token.value for token in sentence).strip()
        for paragraph in segmenter.process(well_formed(text))
        for sentence in paragraph
    ]


class Sentences:
    """Documents as runs of sentences, and these as runs of tokens, mapped from the disk."""

    def __init__(self, folder: Path) -> None:
        self.fingerprint: str = json.loads((folder / _CARD).read_text("utf-8"))["fingerprint"]
        """Of the corpus."""
        self._ids = np.memmap(folder / "ids.i32", np.int32, "r")
        self._begins = np.memmap(folder / "begins.bool", np.bool_, "r")
        self._tokens = _ends(folder / "tokens.i32")  # where each sentence begins among all tokens
        self._sentences = _ends(folder / "sentences.i32")  # where each document begins

    @classmethod
    def store(cls, folder: Path, documents: Iterable[Document], tokenizer: Tokenizer) -> Sentences:
        """Split and tokenise the documents in one pass, unless `folder` holds them already."""
        if not (folder / _CARD).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            fingerprint = Fingerprint()
            reader = _reader(tokenizer)
            with (
                (folder / "ids.i32").open("wb") as ids,
                (folder / "begins.bool").open("wb") as begins,
                (folder / "tokens.i32").open("wb") as tokens,
                (folder / "sentences.i32").open("wb") as sentences,
            ):
                for some in _some(documents, fingerprint):
                    for read in _read(some, reader):
                        for one in read:
                            ids.write(one.ids.tobytes())
                            begins.write(one.begins.tobytes())
                            tokens.write(np.int32(len(one)).tobytes())
                        sentences.write(np.int32(len(read)).tobytes())
            write_at_once(folder / _CARD, json.dumps({"fingerprint": fingerprint.digest()}))
        if not (folder / "sentences.i32").stat().st_size:
            raise MalformedInput("the corpus", None, "has no text to learn from")
        return cls(folder)

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self._sentences) - 1

    def of(self, document: int) -> range:
        """The sentences of a document, which has at least one."""
        return range(int(self._sentences[document]), int(self._sentences[document + 1]))

    def tokens(self, first: int, end: int) -> Tokens:
        """The tokens of some sentences that stand side by side."""
        span = slice(int(self._tokens[first]), int(self._tokens[end]))
        ids, begins = np.array(self._ids[span]), np.array(self._begins[span])
        return Tokens(ids, begins, np.zeros(0, np.int64), len(ids))


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One sequence with words hidden, and what is to be found out of it."""

    features: Features
    places: NDArray[np.int64]  # [hidden], where tokens are hidden
    hidden: NDArray[np.int64]  # [hidden], which tokens they are
    follows: int
    """1 where the second part follows the first in its document, 0 where it is another
    document's, NO_NEXT where there is no second part."""


@dataclass(frozen=True, slots=True)
class ExampleMaker:
    """How examples are made. What is drawn depends on seed, epoch and documents alone."""

    sentences: Sentences
    template: Template
    max_length: int
    share: float
    """Of the tokens, to be hidden."""
    whole_words: bool
    mask_id: int
    vocabulary: int
    seed: int
    documents: Sequence[int] | None = None
    """What examples are made of, second parts too: ascending, or None for every document."""

    def example(self, document: int, epoch: int) -> Example:
        """BERT's: a stretch of the document in two parts, the second of them exchanged or not."""
        rng = np.random.default_rng((self.seed, epoch, document))
        own = self.sentences.of(document)
        if len(own) == 1:
            first, second, follows = self.sentences.tokens(own.start, own.stop), None, NO_NEXT
        else:
            start = int(rng.integers(own.start, own.stop - 1))
            middle = int(rng.integers(start + 1, own.stop))
            first = self.sentences.tokens(start, middle)
            among = range(len(self.sentences)) if self.documents is None else self.documents
            follows = int(rng.random() < 0.5 or len(among) == 1)
            if not follows:
                place = bisect_left(among, document) + int(rng.integers(1, len(among)))
                own = self.sentences.of(among[place % len(among)])
                middle = int(rng.integers(own.start, own.stop))
            second = self.sentences.tokens(middle, own.stop)
        return self._hide(self._join(first, second), follows, rng)

    def _join(self, first: Tokens, second: Tokens | None) -> Features:
        template = self.template
        if second is None:
            room = self.max_length - len(template.before) - len(template.after)
            return _features(Tokens.join(template.before, first.clip(room), template.after), 0, 0)
        room = self.max_length - sum(
            len(part) for part in (template.before, template.between, template.after)
        )
        # The longer is cut: the first at its beginning, so that what meets the second stays.
        of_first = min(len(first), max(room // 2, room - len(second)))
        start = len(first) - of_first
        begins = first.begins[start:].copy()
        begins[:1] = True  # what is left of a word is one
        first = Tokens(first.ids[start:], begins, first.terms, of_first)
        before = Tokens.join(template.before, first, template.between)
        whole = Tokens.join(before, second.clip(room - of_first), template.after)
        return _features(whole, len(before), template.segments[1])

    def _hide(self, features: Features, follows: int, rng: Generator) -> Example:
        """BERT's rule: of the hidden, 80% become the mask, 10% any token, 10% stay."""
        special = {*self.template.before.ids, *self.template.between.ids, *self.template.after.ids}
        open_ = np.flatnonzero(~np.isin(features.ids, list(special)))
        wanted = max(1, round(self.share * len(open_)))
        if self.whole_words:
            words = features.words[open_]
            order = rng.permutation(np.unique(words))
            sizes = np.cumsum(np.bincount(words)[order])
            chosen = order[: int(np.searchsorted(sizes, wanted)) + 1]
            places = open_[np.isin(words, chosen)]
        else:
            places = np.sort(rng.permutation(open_)[:wanted])
        ids = features.ids.copy()
        hidden = ids[places].astype(np.int64)
        lot = rng.random(len(places))
        anything = rng.integers(self.vocabulary, size=len(places))
        ids[places] = np.where(lot < 0.8, self.mask_id, np.where(lot < 0.9, anything, hidden))
        shown = Features(ids, features.segments, features.words, features.first, cut=0)
        return Example(shown, places.astype(np.int64), hidden, follows)


def _features(tokens: Tokens, first: int, second_segment: int) -> Features:
    segments = np.zeros(len(tokens), np.int32)
    if first:
        segments[first:] = second_segment
    words = (np.cumsum(tokens.begins) - 1).astype(np.int32)
    return Features(tokens.ids, segments, words, first, cut=0)


def _reader(tokenizer: Tokenizer) -> Reader:
    """Reads special tokens that a text spells out as text, as rankers read them."""
    return Reader(text_only(tokenizer), _LONGEST_SENTENCE)


def _read(documents: Sequence[Document], reader: Reader) -> Iterator[list[Tokens]]:
    """Each document's sentences; those without a token, and documents without any, are left out."""
    parts = [split(document.text) for document in documents]
    tokens = iter(reader.read([sentence for part in parts for sentence in part]))
    for part in parts:
        read = [one for one in (next(tokens) for _ in part) if len(one)]
        if read:
            yield read


def _some(documents: Iterable[Document], fingerprint: Fingerprint) -> Iterator[list[Document]]:
    held: list[Document] = []
    for document in documents:
        fingerprint.add(document)
        held.append(document)
        if len(held) == _DOCUMENTS_AT_ONCE:
            yield held
            held = []
    if held:
        yield held


def _ends(path: Path) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.fromfile(path, np.int32), dtype=np.int64)])
