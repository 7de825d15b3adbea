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
PAIRS_PER_QUERY = 6
"""Of a training step: one positive, five negatives."""
_SHORTEST_STEPS = 20
_PAIRS_PER_STEP = 48
_VALIDATED_HITS = 30
_COST_OF_TRAINING = 4
"""A pair that is learnt from costs about as much as so many that are only scored."""


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
    rankers: int = 2
    """The base and what training makes of it, or the base alone where there is no time to train."""

    @property
    def pairs(self) -> int:
        """How many pairs are scored at most."""
        return self.rankers * self.depth * (self.dev + self.test)


def affordable(wanted: Sizes, pairs: float) -> Sizes:
    """The sizes that need no more pairs than these, or the least that still say something.

    Given up are validation queries first, then depth, then more validation queries, and test
    queries last: they are what the verdict is sure by.
    """
    sizes = replace(wanted, dev=min(wanted.dev, MOST_VALIDATED))
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
        of_one = sizes.rankers * (sizes.dev + sizes.test if name == "depth" else sizes.depth)
        fewer = max(least, have - ceil(excess / of_one))
        sizes = replace(sizes, **{name: min(have, fewer)})
    return sizes


def share_out(wanted: Sizes, train: int, seconds: float, pairs_per_second: float) -> Sizes:
    """Half of the time for measuring, half for learning from `train` queries.

    Where what is left for learning would be of no use, all of it is for measuring the base.
    """
    sizes = affordable(wanted, seconds / 2 * pairs_per_second)
    left = seconds - sizes.pairs / pairs_per_second
    if left >= shortest_training(train, sizes.dev, pairs_per_second):
        return sizes
    return affordable(replace(wanted, rankers=1), seconds * pairs_per_second)


def shortest_training(train: int, dev: int, pairs_per_second: float) -> float:
    """About how many seconds a training takes that is long enough to be of use.

    That is 20 steps, or one pass over fewer queries, and a validation before and after.
    """
    learnt = min(_SHORTEST_STEPS * _PAIRS_PER_STEP, PAIRS_PER_QUERY * train)
    validated = 2 * _VALIDATED_HITS * min(dev, FEWEST_VALIDATED)
    return (_COST_OF_TRAINING * learnt + validated) / pairs_per_second


def most_queries(seconds: float, pairs_per_second: float) -> int:
    """More training queries than this cannot be seen once, as training is slower than scoring."""
    return max(1, int(seconds * pairs_per_second / PAIRS_PER_QUERY))


def duration(seconds: float) -> str:
    """In words, as people say it."""
    if seconds < 100:
        return f"{max(0, seconds):.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 600 else f"{seconds / 60:.0f} min"
