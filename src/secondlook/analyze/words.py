"""Text to index terms, as Lucene's English analyzer does it, so that both engines agree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import Stemmer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.types import Document

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)

# Word breaks of UAX #29, as far as English needs them: an apostrophe or a full stop between
# letters and a comma or a full stop between digits do not end a word.
_WORD = re.compile(r"\d+(?:[.,]\d+)+|\w+(?:['’.]\w+)*")

_MOST_WORDS_REMEMBERED = 1_000_000


def contents(document: Document) -> str:
    """What an engine indexes of a document: every term as often as it is to count.

    Title, text and predicted queries; or, of a weighed document, each word as often as its weight
    says, since no engine takes frequencies as such (OpenSearch 2.5 and Elasticsearch 8.12 refuse
    `delimited_term_freq`).
    """
    if document.weights is not None:
        return " ".join(" ".join([word] * times) for word, times in document.weights.items())
    parts = (document.title, document.text, *document.queries)
    return " ".join(part for part in parts if part)


class EnglishAnalyzer:
    """Lower-cased Porter stems without stop words and possessives."""

    def __init__(self) -> None:
        self._term_of = _Terms()

    def terms(self, text: str) -> list[str]:
        """The index terms of a text, in order, repeats included."""
        return [term for term in map(self._term_of.__getitem__, _WORD.findall(text)) if term]

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and term of every indexed word."""
        for match in _WORD.finditer(text):
            if term := self._term_of[match.group()]:
                yield match.start(), match.end(), term


class _Terms(dict[str, str]):
    """Words as written → their terms, "" for a stop word; remembers, as most words come again."""

    def __init__(self) -> None:
        super().__init__()
        self._stemmer = Stemmer.Stemmer("porter")

    def __missing__(self, word: str) -> str:
        lower = word.lower().replace("’", "'").removesuffix("'s")
        term: str = "" if lower in STOP_WORDS else self._stemmer.stemWord(lower)
        if len(self) >= _MOST_WORDS_REMEMBERED:
            self.clear()
        self[word] = term
        return term
