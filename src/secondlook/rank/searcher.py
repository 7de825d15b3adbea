"""The first look and the second, knowing engines and models only by what they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.types import Corpus, Query, Retriever, Scorer


@dataclass(frozen=True, slots=True)
class Searcher:
    """Retrieves with an engine and re-ranks with a model."""

    retriever: Retriever
    corpus: Corpus
    scorer: Scorer

    def search(self, queries: Sequence[Query], k: int, depth: int = 100) -> list[Ranking]:
        """The best `k` of the first look's best `depth`, in the second look's order."""
        found = self.retriever.retrieve(queries, depth)
        return [r.top(k) for r in rerank(queries, found, self.corpus, self.scorer)]


def rerank(
    queries: Sequence[Query], rankings: Sequence[Ranking], corpus: Corpus, scorer: Scorer
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
    return [
        Ranking.of(r.query_id, [Hit(hit.doc_id, next(scores)) for hit in r.hits]) for r in rankings
    ]
