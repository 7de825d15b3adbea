"""What is found out about a score. Nothing here computes or draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secondlook.explain.words import Match


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the query or the document, as the ranker reads it."""

    text: str
    start: int
    """Where it begins in its text, in characters; `end` is where it ends."""
    end: int
    pieces: tuple[str, ...]
    """The sub-tokens it is read as."""
    outside: bool
    """Whether the vocabulary lacks it: it is in several pieces, or unknown."""
    matched: Match
    attribution: float
    """How much of the score is lost without it; 0 for punctuation, which is not tried."""


@dataclass(frozen=True, slots=True)
class WindowScore:
    """A part of a long document and its own score."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """How words look at each other: shares of attention, summed over a word's pieces."""

    strm: bool
    as_trained: bool
    """Whether the ranker scores with STRM as this map does; the other map is for comparison."""
    layer: int | None
    """Counted from 1; None is the mean of all. `head` likewise."""
    head: int | None
    score: float
    """What the ranker scores so."""
    query_to_document: tuple[tuple[float, ...], ...]  # [query words][document words]
    document_to_query: tuple[tuple[float, ...], ...]  # [document words][query words]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a document stands among the first stage's hits, and which stage brought it there."""

    first_rank: int
    rank: int
    hits: int
    """How many the re-ranking was taken at."""
    first_score: float
    score: float
    """The final one, which ranks."""
    parts: Mapping[str, float]
    """What the final score is the sum of: each stage's share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Why a pair scored as it did, in figures."""

    query: str
    document: str
    score: float
    """As the ranker ranks by it."""
    shown: float
    """The relevance score, from 0 to 1."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """What the score is the sum of, where the form of the ranker has parts and the score is that of
    one window."""
    cut: int = 0
    """How many of the document's tokens the ranker did not see."""
    cut_query: int = 0
    """How many of the query's."""
    windows: tuple[WindowScore, ...]
    """The parts a long document was scored by; one for a short one."""
    window: int = 0
    """Which of them words and attention are of: the best, or the first where only that counts."""
    query_words: tuple[Word, ...]
    document_words: tuple[Word, ...]
    attention: tuple[AttentionMap, ...] = ()
    """As the ranker scores, then with STRM the other way round where that looks different; empty
    where there is none to see."""
    attention_note: str = ""
    """Why a map is left out, where it carries nothing."""
    standing: Standing | None = None
    """Among all hits of its query, where the document comes from an index."""
