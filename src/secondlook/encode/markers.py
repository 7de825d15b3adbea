"""MarkedBERT's markers: [e1] … [/e1] around the query terms that the document holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from secondlook.analyze import DEFAULT, analyzer
from secondlook.encode.stop_words import STOP_WORDS
from secondlook.encode.words import WordFinder
from secondlook.errors import UnusableTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from secondlook.encode.settings import MarkerSettings
    from secondlook.encode.tokens import Tokens

_UNUSED = re.compile(r"\[unused(\d+)\]")


def marker_tokens(settings: MarkerSettings) -> list[str]:
    """The tokens that `tokens = "added"` needs: [e1], [/e1], [e2], [/e2] and so on."""
    return [f"[{slash}e{k}]" for k in range(1, settings.max_terms + 1) for slash in ("", "/")]


def add_markers(tokenizer: Tokenizer, settings: MarkerSettings) -> int:
    """Make sure the tokenizer knows the markers; how many tokens its vocabulary grew by.

    The network's embeddings have to grow by as many. `[unusedN]` tokens are there already.
    """
    if settings.tokens == "unused":
        return 0
    return tokenizer.add_special_tokens(marker_tokens(settings))


def marker_ids(tokenizer: Tokenizer, settings: MarkerSettings) -> NDArray[np.int32]:
    """The ids of opening and closing markers, [max_terms, 2]."""
    vocabulary = tokenizer.get_vocab()
    if settings.tokens == "added":
        names = marker_tokens(settings)
        if not vocabulary.keys() >= set(names):
            raise UnusableTokenizer(
                f"the vocabulary lacks {names[0]} … {names[-1]}; call add_markers on the tokenizer "
                'and resize the embeddings, or set markers.tokens to "unused"'
            )
    else:
        unused = [name for name in vocabulary if _UNUSED.fullmatch(name)]
        names = sorted(unused, key=lambda name: int(name[7:-1]))[: 2 * settings.max_terms]
        if len(names) < 2 * settings.max_terms:
            raise UnusableTokenizer(
                f"{settings.max_terms} terms need {2 * settings.max_terms} [unusedN] tokens and "
                f"the vocabulary has {len(names)}; lower markers.max_terms to {len(names) // 2}"
                ', or set markers.tokens to "added"'
            )
    return np.array([vocabulary[name] for name in names], np.int32).reshape(-1, 2)


def term_reader(tokenizer: Tokenizer, settings: MarkerSettings) -> Callable[[str], int]:
    """The function that says what a word of a text matches by: equal numbers are equal terms.

    The word is taken as the tokenizer normalises it, without punctuation around it, in lower case,
    and with `match = "stem"` cut to its stem: Porter's, or that of another language. Zero stands
    for words that match nothing: stop words, and words without a letter or digit.
    """
    if settings.analyzer != DEFAULT:
        return _other_language(tokenizer, settings)
    from Stemmer import Stemmer

    normalizer, letters = tokenizer.normalizer, WordFinder(tokenizer).letters
    stemmer = Stemmer("porter") if settings.match == "stem" else None

    @lru_cache(maxsize=2**17)
    def term_of(word: str) -> int:
        form = word.strip().lower()
        if not (form.isascii() and form.isalnum()):  # else there is nothing to normalise
            word = letters(word)
            form = (normalizer.normalize_str(word) if normalizer else word).strip().lower()
            form = letters(form)  # some normalisers put a "▁" before it
            if not any(map(str.isalnum, form)):
                return 0
        if settings.skip_stop_words and form.strip("'\u2019") in STOP_WORDS:
            return 0
        # 64 bits, compared only within one pair: two terms meet by chance once in 10^16 pairs
        return hash(stemmer.stemWord(form) if stemmer else form) or 1

    return term_of


def _other_language(tokenizer: Tokenizer, settings: MarkerSettings) -> Callable[[str], int]:
    """The same by a text analyzer, which reads the word as written: normalisers drop accents."""
    letters, terms_of = WordFinder(tokenizer).letters, analyzer(settings.analyzer).terms

    @lru_cache(maxsize=2**17)
    def term_of(word: str) -> int:
        written = letters(word)
        if not any(map(str.isalnum, written)):
            return 0
        terms = terms_of(written)
        if not terms and settings.skip_stop_words:
            return 0
        stem = " ".join(terms) if settings.match == "stem" else ""
        return hash(stem or written.lower()) or 1

    return term_of


class QueryTerms:
    """The distinct terms of a query, in the order they first stand there.

    `of_word` says which of them each word is, or -1.
    """

    def __init__(self, terms: NDArray[np.int64]) -> None:
        places = {
            term: place for place, term in enumerate(dict.fromkeys(terms[terms != 0].tolist()))
        }
        self.distinct = np.fromiter(places, np.int64, len(places))  # [terms]
        self.of_word = np.array([places.get(term, -1) for term in terms.tolist()], np.intp)
        self.occurrences = np.bincount(self.of_word[self.of_word >= 0], minlength=len(places))


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Which words of a pair are marked, with which k; 0 is unmarked."""

    query: NDArray[np.intp]  # [words that `terms` were read from]
    document: NDArray[np.intp]  # [document words shown]
    shown: int
    """How many of the document's tokens are shown."""


def match(terms: QueryTerms, document: Tokens, room: int, max_terms: int) -> Marks:
    """Mark every occurrence of the query terms that the shown part of the document holds.

    k counts the matched terms in the query's order, a repeated term keeping its first k; of more
    than `max_terms`, the query's first are marked. `room` is how many tokens are left for the
    document and all markers. The document is read word by word until the room is full: a marked
    word is shown whole, between its markers, or not at all, and its first occurrence has to bring
    the room for the query's own markers too.
    """
    held = document.terms[:, None] == terms.distinct  # [document words, terms]
    held &= np.cumsum(held.any(axis=0)) <= max_terms
    marked, found = held.any(axis=1), held.any(axis=0)
    shown, words = len(document), len(held)
    in_query = 2 * terms.occurrences * found
    if shown + 2 * np.count_nonzero(marked) + in_query.sum() > room:
        first = held.argmax(axis=0)
        shown, words = _fit(document, marked, room, first, in_query)
        found &= first < words
    k = np.cumsum(found, dtype=np.intp) * found
    return Marks(np.append(k, 0)[terms.of_word], held[:words] @ k, shown)


def _fit(
    document: Tokens,
    marked: NDArray[np.bool_],
    room: int,
    first: NDArray[np.intp],
    in_query: NDArray[np.intp],
) -> tuple[int, int]:
    """How many tokens and words of the document fit, with all the markers they call for.

    For each term, `first` is the word it first stands at and `in_query` what it takes there.
    """
    starts = np.flatnonzero(document.begins)
    sizes = np.diff(np.append(starts, len(document))) + 2 * marked
    np.add.at(sizes, first, in_query)
    filled = np.cumsum(sizes)
    words = int(np.searchsorted(filled, room, side="right"))
    shown = int(starts[words])
    if marked[words]:
        return shown, words
    left = room - int(filled[words - 1] if words else 0)
    return shown + left, words + (left > 0)  # as in the plain form, a word may lose its end


def insert(
    ids: NDArray[np.int32],
    begins: NDArray[np.bool_],
    marks: NDArray[np.intp],
    markers: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Tokens and word beginnings with markers around the words whose mark is not 0."""
    starts = np.flatnonzero(begins)
    ends = np.append(starts, len(ids))[1:]
    marked = np.flatnonzero(marks)
    opened, closed = starts[marked], ends[marked]
    before = np.zeros(len(ids) + 1, np.intp)  # markers that stand right before each token
    before[opened] += 1
    before[closed] += 1
    place = np.arange(len(ids)) + np.cumsum(before[:-1])
    size = len(ids) + 2 * len(marked)
    all_ids, all_begins = np.empty(size, np.int32), np.ones(size, np.bool_)
    all_ids[place] = ids
    all_begins[place] = begins
    pairs = markers[marks[marked] - 1]  # [marked, 2]
    all_ids[place[opened] - 1] = pairs[:, 0]
    all_ids[place[closed - 1] + 1] = pairs[:, 1]
    return all_ids, all_begins
