"""Both looks' scores as one: the only place where they meet, in verbs, evaluation and server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

Scale = Literal["min-max", "z", "ranks", "raw"]
_RRF = 60
"""Cormack, Clarke and Büttcher (2009): how little the very first ranks stand out."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """weight · first stage + (1 - weight) · re-ranking, each brought to a common scale.

    `raw` takes both as they are, as CCNU at TREC 2019 does: α·BM25 + (1-α)·BERT. Its weight then
    holds for one engine's scores only. The other scales are made anew for each query from the
    scores of its hits, so that no factor of an engine matters: `min-max` lays them between 0 and 1,
    `z` gives them mean 0 and deviation 1, `ranks` takes 1 / (60 + rank) instead, which
    with a weight of .5 is reciprocal rank fusion. Over windows that are pooled by `top` this is
    CCNU's document score, β·BM25 + (1-β)·Σ wᵢSᵢ.
    """

    weight: float
    scale: Scale = "min-max"


def fuse(first: ArrayLike, second: ArrayLike, fusion: Fusion) -> Floats:
    """The final score of each hit of one query, from both stages' scores of the same hits."""
    of_first, of_second = shares(first, second, fusion)
    return of_first + of_second


def shares(first: ArrayLike, second: ArrayLike, fusion: Fusion) -> tuple[Floats, Floats]:
    """What each stage gives to the final scores, which are the sum."""
    return (
        fusion.weight * _scaled(first, fusion.scale),
        (1 - fusion.weight) * _scaled(second, fusion.scale),
    )


def second_look(first: Ranking, scores: ArrayLike, fusion: Fusion | None = None) -> Ranking:
    """The first stage's hits with their final score, best first.

    `scores` are the re-ranking's, in the order of the hits. Without a fusion they are final.
    """
    if fusion is not None:
        scores = fuse([hit.score for hit in first.hits], scores, fusion)
    final = np.asarray(scores).tolist()
    hits = [Hit(hit.doc_id, score) for hit, score in zip(first.hits, final, strict=True)]
    return Ranking.of(first.query_id, hits)


def fuse_rankings(first: Ranking, second: Ranking, fusion: Fusion, k: int) -> Ranking:
    """The best `k` documents of two rankings of one query; `weight` is that of the first.

    A document that only one of them found gets from the other what its last hit gets; of ranks,
    nothing, as reciprocal rank fusion has it.
    """
    (fused,) = BothScores.of_rankings(first, second, fusion.scale).fused([fusion.weight], k)
    return fused


@dataclass(frozen=True, slots=True, eq=False)
class BothScores:
    """The documents of one query with the scores of both stages, on a common scale."""

    query_id: str
    ids: tuple[str, ...]
    """Descending: a stable sort by score then breaks ties as rankings do."""
    scores: Floats  # [2, documents]

    @classmethod
    def of_rankings(cls, first: Ranking, second: Ranking, scale: Scale) -> BothScores:
        """All documents that one of them found, or both."""
        found = {hit.doc_id for ranking in (first, second) for hit in ranking.hits}
        ids = tuple(sorted(found, reverse=True))
        places = {doc_id: place for place, doc_id in enumerate(ids)}
        scores = np.zeros((2, len(ids)))
        for row, ranking in zip(scores, (first, second), strict=True):
            if ranking.hits:
                own = _scaled([hit.score for hit in ranking.hits], scale)
                row[:] = 0.0 if scale == "ranks" else own.min()
                row[[places[hit.doc_id] for hit in ranking.hits]] = own
        return cls(first.query_id, ids, scores)

    @classmethod
    def of_same_hits(cls, first: Ranking, second: ArrayLike, scale: Scale) -> BothScores:
        """The first stage's hits, with the re-ranking's scores in the order of these hits."""
        hits = first.hits
        order = sorted(range(len(hits)), key=lambda place: hits[place].doc_id, reverse=True)
        both = np.stack([_scaled([hit.score for hit in hits], scale), _scaled(second, scale)])
        return cls(first.query_id, tuple(hits[place].doc_id for place in order), both[:, order])

    def fused(self, weights: Sequence[float], k: int | None = None) -> list[Ranking]:
        """The best `k`, or all, by each weight of the first stage."""
        of_first = np.asarray(weights)[:, None]
        final = of_first * self.scores[0] + (1 - of_first) * self.scores[1]  # [weights, documents]
        best = np.argsort(-final, axis=1, kind="stable")[:, :k]
        rows = zip(best.tolist(), np.take_along_axis(final, best, axis=1).tolist(), strict=True)
        return [
            Ranking(self.query_id, tuple(Hit(self.ids[p], v) for p, v in zip(*row, strict=True)))
            for row in rows
        ]


def _scaled(scores: ArrayLike, scale: Scale) -> Floats:
    """Scores that are all alike say nothing: they become 0, or share the order they came in."""
    values = np.asarray(scores, np.float64)
    if scale == "raw" or not len(values):
        return values
    if scale == "ranks":
        ranks = np.empty(len(values))
        ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
        return 1 / (_RRF + ranks)
    base, spread = values.min(), np.ptp(values)
    if scale == "z":
        base, spread = values.mean(), values.std()
    if spread <= np.finfo(np.float32).eps * np.abs(values).max():  # or all of them 0
        return np.zeros(len(values))
    scaled: Floats = (values - base) / spread
    return scaled
