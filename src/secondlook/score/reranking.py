"""Re-ranking in memory: what a program does that holds the candidates already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.data.conversions import load_queries
from secondlook.data.run import Run
from secondlook.errors import MissingQuery
from secondlook.progress import as_progress
from secondlook.rank import rerank, with_tails
from secondlook.rank.batches import DOCUMENTS, PAIRS, batches

if TYPE_CHECKING:
    from secondlook.data.conversions import Queries, RunLike
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.score.open_ranker import AnyRanker
    from secondlook.types import Corpus, Ranking


def rerank_run(
    ranker: AnyRanker,
    queries: Queries,
    run: RunLike,
    corpus: Corpus,
    *,
    depth: int | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> Run:
    """What `Ranker.rerank` promises."""
    known = {query.id: query for query in load_queries(queries)}
    first = Run.of(run)
    for ranking in first:
        if ranking.query_id not in known:
            raise MissingQuery(ranking.query_id, "the list of queries")
    candidates = [ranking if depth is None else ranking.top(depth) for ranking in first]
    at_once = DOCUMENTS if ranker.reads_windows else PAIRS
    scored: list[Ranking] = []
    total = sum(len(ranking.hits) for ranking in candidates)
    with as_progress(progress).counting("re-ranking", "pairs", total) as advance:
        for batch in batches(candidates, at_once):
            own = [known[ranking.query_id] for ranking in batch]
            scored += rerank(own, batch, corpus, ranker, ranker.fusion)
            advance(sum(len(ranking.hits) for ranking in batch))
    return Run(with_tails(scored, first), f"{ranker.name} re-ranked")
