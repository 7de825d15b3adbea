"""How the time of `tune` is shared out between measuring and training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from time import monotonic

SHALLOWEST = 20
"""Re-ranking fewer candidates than this would leave little to gain."""
FEWEST_TESTED = 100
"""Fewer test queries than this show only large differences."""
FEWEST_VALIDATED = 50
MOST_VALIDATED = 200
"""Validation queries are for a choice of two rankers and a weight; more only cost time."""
_ENOUGH_VALIDATED = 100
_RANKERS = 2  # the base, and what training makes of it
_PAIRS_OF_SHORTEST_TRAINING = 7_000
"""In pairs that are scored: 20 steps of 48 pairs, each about four times as dear with its
gradients, and two validations of 50 queries with 30 candidates."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time that a command has, and how much of it is spent."""

    seconds: float
    began: float = field(default_factory=monotonic)

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds until time is up; less than none after it."""
        return self.seconds - self.spent


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is re-ranked to choose a ranker and to test it."""

    depth: int
    """Candidates of each query."""
    dev: int
    """Queries, as `test`."""
    test: int

    @property
    def pairs(self) -> int:
        """How many pairs are scored at most, by the base and by the trained ranker."""
        return _RANKERS * self.depth * (self.dev + self.test)


def affordable(asked: Sizes, pairs: float) -> Sizes:
    """The sizes that need no more pairs than these, or the least that still say something.

    Given up are validation queries first, then depth, then more validation queries, and test
    queries last: they are what the verdict is sure by.
    """
    sizes = replace(asked, dev=min(asked.dev, MOST_VALIDATED))
    for name, least in (
        ("dev", _ENOUGH_VALIDATED),
        ("depth", SHALLOWEST),
        ("dev", FEWEST_VALIDATED),
        ("test", FEWEST_TESTED),
    ):
        excess = sizes.pairs - pairs
        if excess <= 0:
            break
        have = getattr(sizes, name)
        of_one = _RANKERS * (sizes.dev + sizes.test if name == "depth" else sizes.depth)
        fewer = max(least, have - ceil(excess / of_one))
        sizes = replace(sizes, **{name: min(have, fewer)})
    return sizes


def shortest_training(pairs_per_second: float) -> float:
    """About how many seconds a training takes that is long enough to be of use."""
    return _PAIRS_OF_SHORTEST_TRAINING / pairs_per_second


def most_queries(seconds: float, pairs_per_second: float, pairs_per_query: int) -> int:
    """More training queries than this cannot be seen once, as training is slower than scoring."""
    return max(1, int(seconds * pairs_per_second / pairs_per_query))


def duration(seconds: float) -> str:
    """In words, as people say it."""
    if seconds < 100:
        return f"{max(0, seconds):.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 600 else f"{seconds / 60:.0f} min"
