"""The words of a text where nobody knows how the ranker reads it."""

from __future__ import annotations

import re

from secondlook.analyze import DEFAULT, analyzer
from secondlook.explain.words import ReadWord

_WORD = re.compile(r"\w+(?:['’.]\w+)*|[^\w\s]")


class PlainWordReader:
    """Finds words by spaces and punctuation. They match by `language`'s stems and stop words."""

    def __init__(self, language: str | None = None) -> None:
        self._terms = analyzer(language or DEFAULT).terms

    def read(self, text: str) -> list[ReadWord]:
        """All words and punctuation marks of the text, in order."""
        words = []
        for match in _WORD.finditer(text):
            word = match.group()
            terms = " ".join(self._terms(word))
            exact, stem = (hash(word.lower()) or 1, hash(terms) or 1) if terms else (0, 0)
            start, end = match.span()
            words.append(ReadWord(word, start, end, (word,), outside=False, term=exact, stem=stem))
        return words
