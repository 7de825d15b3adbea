"""Re-ranking in parts: what a worker of a cluster does with one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from secondlook.data.trec import run_lines
from secondlook.rank import rerank
from secondlook.rank.batches import DOCUMENTS, PAIRS, batches
from secondlook.types import Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Literal

    from secondlook.score.export_folder import Engine, Precision


def as_work(queries: Sequence[Query], rankings: Sequence[Ranking]) -> str:
    """A part's queries and hits; the texts stay where they are."""
    return json.dumps(
        [
            [query.id, query.text, query.type, [[hit.doc_id, hit.score] for hit in ranking.hits]]
            for query, ranking in zip(queries, rankings, strict=True)
        ]
    )


def from_work(text: str) -> tuple[list[Query], list[Ranking]]:
    """The same back."""
    rows = json.loads(text)
    queries = [Query(query_id, words, kind) for query_id, words, kind, _ in rows]
    rankings = [
        Ranking(query_id, tuple(Hit(*hit) for hit in hits)) for query_id, _, _, hits in rows
    ]
    return queries, rankings


def reranker(
    index: Path,
    ranker: str,
    backend: Literal["auto", "torch"] | Engine,
    precision: Literal["auto"] | Precision,
) -> Callable[[str], tuple[str, int]]:
    """Opens index and ranker once; what it returns does a part as the verb on one machine would."""
    from secondlook.retrieve import open_index
    from secondlook.score.ranker import Ranker

    corpus = open_index(index)
    scorer = Ranker.load(ranker, backend=backend, precision=precision, same_on_any_machine=True)
    at_once = DOCUMENTS if scorer.settings.encode.windows else PAIRS

    def do(work: str) -> tuple[str, int]:
        queries, rankings = from_work(work)
        asked = {query.id: query for query in queries}
        made = [
            ranking
            for batch in batches(rankings, at_once)
            for ranking in rerank(
                [asked[ranking.query_id] for ranking in batch],
                batch,
                corpus,
                scorer,
                scorer.fusion,
            )
        ]
        lines = "".join(line + "\n" for line in run_lines(made, "secondlook"))
        return lines, sum(len(ranking.hits) for ranking in rankings)

    return do
