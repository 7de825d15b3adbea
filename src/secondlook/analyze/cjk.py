from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import normalize

from secondlook.analyze.words import lower

if TYPE_CHECKING:
    from collections.abc import Iterator

# Han with its sign of repetition (U+3005) and its zero (U+3007), Hiragana, Katakana and Hangul,
# which stand without spaces or in long compounds.
_CJK = "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"(?P<cjk>[{_CJK}]+)|[^\W{_CJK}]+")


class CjkAnalyzer:
    """Chinese, Japanese and Korean: every two neighbouring characters are a term, as in Lucene.

    A character that stands alone is a term by itself; other scripts are lower-cased words. Full and
    half width are the same, and so are characters written as one or with a mark of their own.
    """

    opensearch: str | None = "cjk"

    def terms(self, text: str) -> list[str]:
        """The index terms of a text, in order, repeats included."""
        return [term for _, _, term in self.spans(normalize("NFKC", text))]

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and term of every indexed word or pair of characters; pairs overlap."""
        for run in _RUN.finditer(text):
            start, end = run.span()
            if run["cjk"] is None:
                yield start, end, lower(normalize("NFKC", run.group()))
                continue
            for at in range(start, max(start + 1, end - 1)):
                pair = text[at : min(at + 2, end)]
                yield at, at + len(pair), pair
