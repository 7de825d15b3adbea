"""Mining in parts: what a worker of a cluster does with one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from secondlook.types import Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from secondlook.data import CorpusStore
    from secondlook.retrieve import Index
    from secondlook.retrieve.hybrid import By
    from secondlook.train.groups import Group
    from secondlook.train.mine import Counts, MineSettings
    from secondlook.types import Qrels


def as_work(queries: Sequence[Query], qrels: Qrels, found: Sequence[Ranking] | None) -> str:
    """A part's queries, their judgments and their first stage; None where the index is asked."""
    rankings = None
    if found is not None:
        rankings = [[[hit.doc_id, hit.score] for hit in ranking.hits] for ranking in found]
    return json.dumps(
        {
            "queries": [[query.id, query.text, query.type] for query in queries],
            "qrels": {query.id: qrels[query.id] for query in queries},
            "found": rankings,
        }
    )


def miner(index: Path, settings: MineSettings, by: By) -> Callable[[str], tuple[str, int]]:
    """Opens the index once; what it returns mines a part as the verb on one machine would."""
    from secondlook.retrieve.hybrid import open_first_stage
    from secondlook.score.vectors import VectorEncoder
    from secondlook.train.groups import row_of
    from secondlook.train.mine import Miner

    engine = open_first_stage(index, by, VectorEncoder.load_for_queries)
    pool = store_of(engine)

    def do(work: str) -> tuple[str, int]:
        part: dict[str, Any] = json.loads(work)
        queries = {row[0]: Query(*row) for row in part["queries"]}
        if part["found"] is None:
            rankings = engine.retrieve(list(queries.values()), settings.ranks[1])
        else:
            hits = zip(queries, part["found"], strict=True)
            rankings = [Ranking(asked, tuple(Hit(*hit) for hit in own)) for asked, own in hits]
        own = Miner(queries, part["qrels"], engine, settings, pool)
        rows = [json.dumps(row_of(group)) for group in own.groups(rankings)]
        counted = json.dumps(own.counts.to_dict())
        return "".join(row + "\n" for row in (counted, *rows)), len(queries)

    return do


def store_of(engine: Index) -> CorpusStore | None:
    """The documents on this disk, where the index has them."""
    from secondlook.retrieve.hybrid import HybridIndex

    by_words = engine.engine if isinstance(engine, HybridIndex) else engine
    return getattr(by_words, "store", None)


def mined(results: Iterable[Path], counts: Counts) -> Iterator[Group]:
    """The groups of all parts, in order; what each part counted is added to `counts`."""
    from secondlook.train.groups import group_of

    for path in results:
        with path.open(encoding="utf-8") as rows:
            counts.add(json.loads(next(rows)))
            for row in rows:
                yield group_of(json.loads(row))
