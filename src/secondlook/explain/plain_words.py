"""The words of a text where nobody knows how the ranker reads it."""

from __future__ import annotations

import re

from secondlook.analyze import DEFAULT, analyzer
from secondlook.characters import in_word
from secondlook.explain.words import ReadWord


class PlainWordReader:
    """Finds words by spaces and punctuation. They match by `language`'s stems and stop words."""

    def __init__(self, language: str | None = None) -> None:
        self._terms = analyzer(language or DEFAULT).terms
        self._word = re.compile(rf"{in_word()}+(?:['’.]{in_word()}+)*|[^\w\s]")

    def read(self, text: str) -> list[ReadWord]:
        """All words and punctuation marks of the text, in order."""
        words = []
        for match in self._word.finditer(text):
            word = match.group()
            terms = " ".join(self._terms(word))
            exact, stem = (hash(word.lower()) or 1, hash(terms) or 1) if terms else (0, 0)
            start, end = match.span()
            words.append(ReadWord(word, start, end, (word,), outside=False, term=exact, stem=stem))
        return words
