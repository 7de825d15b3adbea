"""The first look and the second, knowing engines and models only by what they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.rank.fusion import second_look
from secondlook.types import Ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.rank.fusion import Fusion
    from secondlook.types import Corpus, Query, Retriever, Scorer


@dataclass(frozen=True, slots=True)
class Searcher:
    """Retrieves with an engine and re-ranks with a model, alone or fused with the engine."""

    retriever: Retriever
    corpus: Corpus
    scorer: Scorer
    fusion: Fusion | None = None

    def search(self, queries: Sequence[Query], k: int, depth: int = 100) -> list[Ranking]:
        """The best `k` of the first look's best `depth`, in the second look's order."""
        found = self.retriever.retrieve(queries, depth)
        looks = rerank(queries, found, self.corpus, self.scorer, self.fusion)
        return [ranking.top(k) for ranking in looks]


def rerank(
    queries: Sequence[Query],
    rankings: Sequence[Ranking],
    corpus: Corpus,
    scorer: Scorer,
    fusion: Fusion | None = None,
) -> list[Ranking]:
    """The same hits, scored anew. All pairs are scored in one batch; texts are fetched once."""
    wanted = dict.fromkeys(hit.doc_id for ranking in rankings for hit in ranking.hits)
    texts = dict(zip(wanted, corpus.fetch(list(wanted)), strict=True))
    pairs = [
        (query, texts[hit.doc_id])
        for query, ranking in zip(queries, rankings, strict=True)
        for hit in ranking.hits
    ]
    scores = iter(scorer.score(pairs).tolist())
    return [second_look(r, [next(scores) for _ in r.hits], fusion) for r in rankings]


def cut(
    queries: Sequence[Query],
    rankings: Sequence[Ranking],
    corpus: Corpus,
    scorer: Scorer,
    keep: int,
    fusion: Fusion | None = None,
) -> list[Ranking]:
    """Of each ranking only the `keep` hits that a cheap scorer ranks best: a cascade's first step.

    They keep the first look's scores and order, as if it had found no others. Rankings of no more
    than `keep` hits are not scored.
    """
    long = [
        (query, ranking)
        for query, ranking in zip(queries, rankings, strict=True)
        if len(ranking.hits) > keep
    ]
    looks = rerank([q for q, _ in long], [r for _, r in long], corpus, scorer, fusion)
    chosen = {look.query_id: {hit.doc_id for hit in look.hits[:keep]} for look in looks}
    return [
        Ranking(r.query_id, tuple(hit for hit in r.hits if hit.doc_id in chosen[r.query_id]))
        if r.query_id in chosen
        else r
        for r in rankings
    ]
