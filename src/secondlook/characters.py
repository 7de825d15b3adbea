"""Characters that words are made of."""

from __future__ import annotations

from functools import cache
from unicodedata import category


@cache
def in_word() -> str:
    r"""A character class for patterns: `\w`, and marks that are characters of their own.

    For Python these end a word: accents ("u" and a diaeresis for "ü"), the vowel signs of Hindi,
    Tamil or Thai, and the joiner between them.
    """
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if category(chr(code))[0] == "M")
    return rf"[\w\u200d{marks}]"
