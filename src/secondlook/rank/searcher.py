"""The first stage and the second, knowing engines and models only by what they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.rank.fusion import second_look
from secondlook.rank.present import pairs_of
from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
        """The best `k` of the first stage's best `depth`, in the re-ranking's order."""
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
    """The same hits, scored anew. All pairs are scored in one batch; texts are fetched once.

    Hits whose documents have vanished from a live index are left out.
    """
    present, pairs = pairs_of(queries, rankings, corpus, scorer)
    scores = iter(scorer.score(pairs).tolist())
    return [second_look(r, [next(scores) for _ in r.hits], fusion) for r in present]


def with_tails(reranked: Iterable[Ranking], first: Iterable[Ranking]) -> Iterator[Ranking]:
    """Each ranking with the other hits of the first stage below it, in the order they had there.

    Both come in the same order of queries; `first` may have more of them. The scores of the added
    hits only say their order: each is by 1 lower than that of the hit above.
    """
    whole = iter(first)
    for ranking in reranked:
        before = next(other for other in whole if other.query_id == ranking.query_id)
        yield _with_tail(ranking, before)


def _with_tail(ranking: Ranking, first: Ranking) -> Ranking:
    seen = {hit.doc_id for hit in ranking.hits}
    rest = [hit.doc_id for hit in first.hits if hit.doc_id not in seen]
    if not rest:
        return ranking
    lowest = ranking.hits[-1].score if ranking.hits else 0.0  # all of them vanished since
    step = max(1.0, abs(lowest) * 1e-6)  # trec_eval reads single precision
    tail = (Hit(doc_id, lowest - step * below) for below, doc_id in enumerate(rest, start=1))
    return Ranking(ranking.query_id, (*ranking.hits, *tail))


def cut(
    queries: Sequence[Query],
    rankings: Sequence[Ranking],
    corpus: Corpus,
    scorer: Scorer,
    keep: int,
    fusion: Fusion | None = None,
) -> list[Ranking]:
    """Of each ranking only the `keep` hits that a cheap scorer ranks best: a cascade's first step.

    They keep the first stage's scores and order, as if it had found no others. Rankings of no more
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
