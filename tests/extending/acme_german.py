"""A text analyzer, as another package writes it: German, with compounds taken apart."""

from __future__ import annotations

import Stemmer

from secondlook.analyze.stop_words import STOP_WORDS
from secondlook.analyze.words import WordAnalyzer, lower

PARTS = ("haus", "tür", "garten", "schlüssel")


def german_compounds() -> WordAnalyzer:
    stem = Stemmer.Stemmer("german").stemWord

    def term_of(word: str) -> str:
        written = lower(word)
        if written in STOP_WORDS["german"]:
            return ""
        last = next((part for part in PARTS if written.endswith(part)), written)
        return str(stem(last))

    return WordAnalyzer(term_of, opensearch="german")
