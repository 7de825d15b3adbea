"""How a long re-ranking is cut: into batches that are the same on any machine."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from secondlook.types import Ranking

PAIRS = 256
"""Enough that pairs of like length meet, and seconds of work where it is slow (decision 0148)."""
DOCUMENTS = 32
"""Of a ranker with windows, each of which makes many pairs."""
_BATCHES_OF_A_PART = 16


def batches(rankings: Iterable[Ranking], at_once: int) -> Iterator[list[Ranking]]:
    """Whole rankings together, until they make a good number of pairs; the last may have fewer.

    From any batch on, the rest is cut as it was: a resumed job has the batches of one that was
    never interrupted.
    """
    batch: list[Ranking] = []
    pairs = 0
    for ranking in rankings:
        batch.append(ranking)
        pairs += len(ranking.hits)
        if pairs >= at_once:
            yield batch
            batch, pairs = [], 0
    if batch:
        yield batch


def parts(rankings: Iterable[Ranking], at_once: int) -> Iterator[list[Ranking]]:
    """Some batches together, for a worker elsewhere; it cuts them into the same batches again."""
    rest = batches(rankings, at_once)
    while some := list(islice(rest, _BATCHES_OF_A_PART)):
        yield [ranking for batch in some for ranking in batch]
