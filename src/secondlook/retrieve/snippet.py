"""The stretch of a text that shows best why a query found it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.analyze import DEFAULT, analyzer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.types import Document

_LENGTH = 240  # characters
_LEAD = 20  # characters before the first matched word
_REACH = 40  # characters before these, in which a space is looked for to begin at


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of a text, and where in it words of the query are."""

    text: str
    matches: tuple[tuple[int, int], ...]
    """Where matched words begin and end in `text`, in characters."""


def snippet(
    document: Document,
    query: str,
    passage: tuple[int, int] | None = None,
    language: str = DEFAULT,
) -> Snippet:
    """The stretch of the text, or of its passage, with the most words of the query.

    The title comes first; an ellipsis stands where the text goes on. Words match as in an index of
    this language.
    """
    analysis = analyzer(language)
    wanted = frozenset(analysis.terms(query))
    text = document.text if passage is None else document.text[slice(*passage)]
    text = f"{document.title}. {text}" if document.title else text
    matched = [(start, end) for start, end, term in analysis.spans(text) if term in wanted]
    begin = densest([start for start, _ in matched])
    begin = _begin_before(text, begin - _LEAD) if begin > 2 * _LEAD else 0
    before = "…" if begin > 0 else ""
    after = "…" if begin + _LENGTH < len(text) else ""
    shift = len(before) - begin
    return Snippet(
        before + text[begin : begin + _LENGTH].replace("\n", " ") + after,
        tuple(
            (start + shift, end + shift)
            for start, end in matched
            if begin <= start and end <= begin + _LENGTH
        ),
    )


def _begin_before(text: str, most: int) -> int:
    """Where a word begins; `most` itself where no space is near, as in Chinese and Japanese."""
    space = text.rfind(" ", max(0, most - _REACH), most)
    return space + 1 if space >= 0 else most


def densest(starts: Sequence[int]) -> int:
    """Of these positions, in order, the first from which on the most are in one snippet."""
    within = {
        begin: bisect_left(starts, begin + _LENGTH - _LEAD, lo=number) - number
        for number, begin in enumerate(starts)
    }
    return max(within, key=within.__getitem__, default=0)
