"""Words as index terms: found in a text, lower-cased, without stop words, cut to their stems."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import normalize

import Stemmer

from secondlook.analyze.stop_words import ENGLISH
from secondlook.characters import in_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Word breaks of UAX #29, as far as English needs them: an apostrophe or a full stop between
# letters and a comma or a full stop between digits do not end a word.
_WORD = re.compile(r"\d+(?:[.,]\d+)+|\w+(?:['’.]\w+)*")

_MOST_WORDS_REMEMBERED = 1_000_000


class WordAnalyzer:
    """Words by spaces and punctuation, each made a term by `term_of`; "" is a word to leave out."""

    def __init__(
        self,
        term_of: Callable[[str], str],
        opensearch: str | None = None,
        word: re.Pattern[str] | None = None,
    ) -> None:
        self.opensearch = opensearch
        self._word = word or _marked_word()
        self._terms = _Remembered(term_of)

    def terms(self, text: str) -> list[str]:
        """The index terms of a text, in order, repeats included."""
        return [term for term in map(self._terms.__getitem__, self._word.findall(text)) if term]

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and term of every indexed word."""
        for match in self._word.finditer(text):
            if term := self._terms[match.group()]:
                yield match.start(), match.end(), term


def english() -> WordAnalyzer:
    """Lower-cased Porter stems without stop words and possessives, as Lucene's English analyzer."""
    stem = Stemmer.Stemmer("porter").stemWord

    def term_of(word: str) -> str:
        lower = word.lower().replace("’", "'").removesuffix("'s")
        return "" if lower in ENGLISH else str(stem(lower))

    return WordAnalyzer(term_of, "english", _WORD)


def plain() -> WordAnalyzer:
    """Lower-cased words as they stand, for texts of any language or of several."""
    return WordAnalyzer(lower, "standard")


def lower(word: str) -> str:
    """In lower case, with accents and apostrophes written in one way."""
    return normalize("NFC", word).lower().replace("’", "'")


@cache
def _marked_word() -> re.Pattern[str]:
    """As `_WORD`, with marks that are characters of their own."""
    return re.compile(rf"\d+(?:[.,]\d+)+|{in_word()}+(?:['’.]{in_word()}+)*")


class _Remembered(dict[str, str]):
    """Words as written → their terms, computed once, as most words come again."""

    def __init__(self, term_of: Callable[[str], str]) -> None:
        super().__init__()
        self._term_of = term_of

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_WORDS_REMEMBERED:
            self.clear()
        self[word] = term = self._term_of(word)
        return term
