"""Which words of a text the query holds too, and which the ranker's vocabulary lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from secondlook.explain.words import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from secondlook.explain.words import Match, ReadWord


class Reader(Protocol):
    """Finds the words of a text."""

    def read(self, text: str) -> list[ReadWord]:
        """All words of the text, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Mark:
    """A word worth pointing out, by where it stands in its text, in characters."""

    start: int
    end: int
    matched: Match
    outside: bool
    """Whether the vocabulary lacks it: it is read in several pieces, or as unknown."""


def mark(query: str, texts: Iterable[str], reader: Reader) -> tuple[list[Mark], list[list[Mark]]]:
    """The marks of the query, which match in any of the texts, and those of each text."""
    asked = reader.read(query)
    read = [reader.read(text) for text in texts]
    return _marks(asked, [word for words in read for word in words]), [
        _marks(words, asked) for words in read
    ]


def _marks(words: Sequence[ReadWord], others: Sequence[ReadWord]) -> list[Mark]:
    return [
        Mark(word.start, word.end, matched, word.outside)
        for word, matched in zip(words, matches(words, others), strict=True)
        if matched or (word.outside and any(map(str.isalnum, word.text)))
    ]
