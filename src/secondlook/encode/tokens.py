"""Texts as tokens, and the store that keeps them, so that no text is tokenised twice."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import Sequence as InTurn
from tokenizers.pre_tokenizers import Split

from secondlook.encode.words import WordFinder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from tokenizers import Encoding

_AT_ONCE = 2**21
"""Characters in one call of the tokenizer, whose results take a hundred times the memory."""

_LONGEST_WORD = 100
"""Characters; longer ones match nothing, as WordPiece reads nothing longer either."""

_OVERHEAD = 600
"""Bytes of Python objects per text held, beside the text and the arrays' data."""

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A run of tokens: a text as far as any pair can show it, or special tokens."""

    ids: NDArray[np.int32]  # [tokens]
    begins: NDArray[np.bool_]  # [tokens], whether the token is the first of a word
    terms: NDArray[np.int64]  # [words], what each word matches by; 0 matches nothing
    total: int
    """How many tokens the whole text has."""

    @classmethod
    def special(cls, ids: Sequence[int]) -> Tokens:
        """Tokens that are words of their own and match nothing."""
        size = len(ids)
        return cls(np.array(ids, np.int32), np.ones(size, np.bool_), np.zeros(size, np.int64), size)

    @classmethod
    def join(cls, *runs: Tokens) -> Tokens:
        """One run after the other."""
        return cls(
            np.concatenate([run.ids for run in runs]),
            np.concatenate([run.begins for run in runs]),
            np.concatenate([run.terms for run in runs]),
            sum(run.total for run in runs),
        )

    def clip(self, limit: int) -> Tokens:
        """At most the first `limit` tokens. What is left of a word in two matches nothing."""
        if len(self.ids) <= limit:
            return self
        begins = self.begins[:limit]
        terms = self.terms[: np.count_nonzero(begins)].copy()
        if not self.begins[limit]:
            terms[-1:] = 0
        return Tokens(self.ids[:limit], begins, terms, self.total)

    def unmatched(self) -> Tokens:
        """The same tokens, of which no word matches anything."""
        return Tokens(self.ids, self.begins, np.zeros_like(self.terms), self.total)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """The memory held, roughly."""
        return self.ids.nbytes + self.begins.nbytes + self.terms.nbytes + _OVERHEAD


def well_formed(text: str) -> str:
    """The text as Unicode allows it: a lone surrogate, which no encoder takes, becomes U+FFFD."""
    return text if text.isascii() else _LONE_SURROGATES.sub("\ufffd", text)


def text_only(tokenizer: Tokenizer) -> Tokenizer:
    """A copy that reads everything as text, special tokens that a text spells out among it."""
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.encode_special_tokens = True
    added = tokenizer.get_added_tokens_decoder().values()
    special = [token.content for token in added if token.special]
    read = tokenizer.encode_batch(special, add_special_tokens=False)
    # Unigram has them among its pieces, and prefers them: there their spelling must not stay whole
    whole = [
        f"{re.escape(spelled[0])}(?={re.escape(spelled[1:])})"
        for spelled, encoding in zip(special, read, strict=True)
        if len(spelled) > 1 and (spelled, (0, len(spelled))) in _pieces(encoding)
    ]
    if whole:
        apart = Split(Regex("|".join(whole)), "isolated")
        before = tokenizer.pre_tokenizer
        tokenizer.pre_tokenizer = apart if before is None else InTurn([before, apart])
    return tokenizer


def _pieces(encoding: Encoding) -> Iterator[tuple[str, tuple[int, int]]]:
    return zip(encoding.tokens, encoding.offsets, strict=True)


def in_batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in runs that the tokenizer can take at once without exhausting the memory."""
    start = size = 0
    for place, text in enumerate(texts):
        if place > start and size + len(text) > _AT_ONCE:
            yield texts[start:place]
            start, size = place, 0
        size += len(text)
    if texts:
        yield texts[start:]


def word_beginnings(word_ids: Sequence[int | None]) -> NDArray[np.bool_]:
    """Whether each token is the first of what the tokenizer takes for a word."""
    words = np.array(word_ids, np.int32)
    begins = np.ones(len(words), np.bool_)
    np.not_equal(words[1:], words[:-1], out=begins[1:])
    return begins


def count_split_words(tokenizer: Tokenizer, text: str) -> int:
    """How many words of the text are not in the vocabulary, so that they are cut into pieces."""
    begins = word_beginnings(tokenizer.encode(text, add_special_tokens=False).word_ids)
    return int((begins[:-1] & ~begins[1:]).sum())  # a word whose first piece has a second


def word_spans(encoding: Encoding, begins: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where in the text each word stands, in characters."""
    offsets, starts = encoding.offsets, np.flatnonzero(begins).tolist()
    ends = [*starts, len(begins)][1:]
    return [(offsets[i][0], offsets[j - 1][1]) for i, j in zip(starts, ends, strict=True)]


class Reader:
    """Tokenises texts, keeping at most `limit` tokens of each.

    With `term_of`, words are read as terms too: the function gets a word as it stands in the text.
    """

    def __init__(
        self, tokenizer: Tokenizer, limit: int, term_of: Callable[[str], int] | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._limit = limit
        self._term_of = term_of
        self._words = WordFinder(tokenizer)

    def read(self, texts: Sequence[str], prompt: str = "") -> list[Tokens]:
        """The tokens of each text behind the prompt, whose own words match nothing."""
        whole = [well_formed(prompt + text) for text in texts]
        if self._term_of is None and self._words.by_spelling:
            encodings = self._tokenizer.encode_batch_fast(whole, add_special_tokens=False)
        else:
            encodings = self._tokenizer.encode_batch(whole, add_special_tokens=False)
        return [
            self._tokens(text, encoding, len(prompt))
            for text, encoding in zip(whole, encodings, strict=True)
        ]

    def _tokens(self, text: str, encoding: Encoding, prompt: int) -> Tokens:
        ids = np.array(encoding.ids[: self._limit], np.int32)
        begins = self._words.begins(text, encoding, ids)
        if self._term_of is None:
            return Tokens(ids, begins, np.empty(0, np.int64), len(encoding))
        terms = [
            self._term_of(text[start:end]) if end > prompt and end - start <= _LONGEST_WORD else 0
            for start, end in word_spans(encoding, begins)
        ]
        return Tokens(ids, begins, np.array(terms, np.int64), len(encoding))


class TokenStore:
    """Keeps what a reader read behind a prompt; the least recently used leaves when it is full."""

    def __init__(self, reader: Reader, prompt: str, max_bytes: int) -> None:
        self._reader = reader
        self._prompt = prompt
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, Tokens] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def read(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text, read now or before."""
        wanted = dict.fromkeys(texts)
        with self._lock:
            found = {text: self._held[text] for text in wanted if text in self._held}
            for text in found:
                self._held.move_to_end(text)
        for some in in_batches([text for text in wanted if text not in found]):
            fresh = dict(zip(some, self._reader.read(some, self._prompt), strict=True))
            found.update(fresh)
            self._hold(fresh)
        return [found[text] for text in texts]

    def _hold(self, fresh: dict[str, Tokens]) -> None:
        with self._lock:
            for text, tokens in fresh.items():
                if text not in self._held:  # another thread may have been faster
                    self._held[text] = tokens
                    self._bytes += tokens.nbytes + sys.getsizeof(text)
            while self._bytes > self._max_bytes:
                text, tokens = self._held.popitem(last=False)
                self._bytes -= tokens.nbytes + sys.getsizeof(text)
