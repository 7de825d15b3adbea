"""How deep the re-ranking has to go, and the best it could reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.evaluate.measures import evaluate, refuse_strangers
from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from secondlook.types import Qrels

DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class Depth:
    """What re-ranking the first stage's best `depth` hits is worth by a measure."""

    depth: int
    reached: float
    """By the re-ranking."""
    ceiling: float
    """By the best order of the same hits that the judgments allow."""


def depth_curve(
    qrels: Qrels, first: Sequence[Ranking], second: Sequence[Ranking], measure: str
) -> list[Depth]:
    """The measure for each depth that the first stage reaches, 0 being the first stage itself.

    Below the depth, hits stand as the first stage had them.
    """
    refuse_strangers(qrels, first)
    scores = {r.query_id: {hit.doc_id: hit.score for hit in r.hits} for r in second}
    deepest = max((len(ranking.hits) for ranking in first), default=0)
    depths = [0, *(depth for depth in DEPTHS if depth < deepest), deepest]
    grades = {query: {d: float(g) for d, g in some.items()} for query, some in qrels.items()}
    return [
        Depth(
            depth,
            _mean(qrels, _reordered(first, scores, depth), measure),
            _mean(qrels, _reordered(first, grades, depth), measure),
        )
        for depth in depths
    ]


def same_hits(first: Sequence[Ranking], second: Sequence[Ranking]) -> float:
    """The share of the re-ranking's hits that the first stage had: 1 for a re-ranking."""
    had = {ranking.query_id: {hit.doc_id for hit in ranking.hits} for ranking in first}
    hits = [(r.query_id, hit.doc_id) for r in second for hit in r.hits]
    return sum(doc_id in had.get(query, ()) for query, doc_id in hits) / max(1, len(hits))


def _mean(qrels: Qrels, rankings: Iterator[Ranking], measure: str) -> float:
    [mean] = evaluate(qrels, rankings, [measure]).means.values()
    return mean


def _reordered(
    first: Sequence[Ranking], scores: Mapping[str, Mapping[str, float]], depth: int
) -> Iterator[Ranking]:
    """The first stage with its best `depth` hits in the order of other scores.

    Hits without such a score come behind those that have one; equals stay as they were.
    """
    for ranking in first:
        own = scores.get(ranking.query_id, {})
        ids = [hit.doc_id for hit in ranking.hits]
        best = sorted(ids[:depth], key=lambda doc_id: -own.get(doc_id, float("-inf")))
        order = [*best, *ids[depth:]]
        yield Ranking(
            ranking.query_id,
            tuple(Hit(doc_id, float(-place)) for place, doc_id in enumerate(order)),
        )
