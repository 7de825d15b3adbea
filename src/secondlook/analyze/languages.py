"""Languages other than English: Snowball's stems, stop words where we have them, elisions."""

from __future__ import annotations

import re
from functools import partial
from unicodedata import normalize

import Stemmer

from secondlook.analyze.stop_words import STOP_WORDS
from secondlook.analyze.words import WordAnalyzer, lower

# Articles and pronouns that an apostrophe ties to the next word; Lucene cuts them off, too.
_ELISIONS = {
    "catalan": "d l m n s t",
    "french": "l m t qu n s j d c jusqu quoiqu lorsqu puisqu",
    "irish": "d m b",
    "italian": "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d",
}


def _analyzer(language: str) -> WordAnalyzer:
    """The analyzer of a language that Snowball has a stemmer for."""
    stem = Stemmer.Stemmer(language).stemWord
    stop_words = STOP_WORDS.get(language, frozenset())
    elided = "|".join(_ELISIONS.get(language, "").split())
    elision = re.compile(f"(?:{elided})'(?=.)") if elided else None

    def term_of(word: str) -> str:
        if language == "turkish":  # the one language whose dotless i is a letter of its own
            word = normalize("NFC", word).replace("İ", "i").replace("I", "\u0131")
        written = lower(word)
        if elision and (cut := elision.match(written)):
            written = written[cut.end() :]
        return "" if written in stop_words else str(stem(written))

    return WordAnalyzer(term_of, language)


arabic = partial(_analyzer, "arabic")
armenian = partial(_analyzer, "armenian")
basque = partial(_analyzer, "basque")
catalan = partial(_analyzer, "catalan")
danish = partial(_analyzer, "danish")
dutch = partial(_analyzer, "dutch")
estonian = partial(_analyzer, "estonian")
finnish = partial(_analyzer, "finnish")
french = partial(_analyzer, "french")
german = partial(_analyzer, "german")
greek = partial(_analyzer, "greek")
hungarian = partial(_analyzer, "hungarian")
indonesian = partial(_analyzer, "indonesian")
irish = partial(_analyzer, "irish")
italian = partial(_analyzer, "italian")
lithuanian = partial(_analyzer, "lithuanian")
norwegian = partial(_analyzer, "norwegian")
portuguese = partial(_analyzer, "portuguese")
romanian = partial(_analyzer, "romanian")
russian = partial(_analyzer, "russian")
spanish = partial(_analyzer, "spanish")
swedish = partial(_analyzer, "swedish")
turkish = partial(_analyzer, "turkish")
