"""Where a document stands among all that the first stage found, and what each stage did for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from secondlook.errors import SecondlookError
from secondlook.explain.findings import Standing
from secondlook.rank.fusion import shares
from secondlook.rank.present import fetch_present, still_there

if TYPE_CHECKING:
    from secondlook.score.open_ranker import AnyRanker
    from secondlook.types import Corpus, Query, Retriever

    class Engine(Retriever, Corpus, Protocol):
        """What finds documents and has their texts."""


def standing(query: Query, doc_id: str, engine: Engine, ranker: AnyRanker, depth: int) -> Standing:
    """The document's places and the parts of its final score among the best `depth` hits."""
    (first,) = engine.retrieve([query], depth)
    texts = fetch_present(engine, [hit.doc_id for hit in first.hits])
    first = still_there(first, texts)
    ids = [hit.doc_id for hit in first.hits]
    if doc_id not in ids:
        raise SecondlookError(
            f"{doc_id} is not among the first stage's best {depth}: the ranker never sees it; "
            "take a greater depth, if the index holds it"
        )
    place = ids.index(doc_id)
    scores = ranker.score([(query, text) for text in map(texts.__getitem__, ids)])
    parts = {"second look": scores.astype(np.float64)}
    if ranker.fusion is not None:
        of_first, of_second = shares([hit.score for hit in first.hits], scores, ranker.fusion)
        parts = {"first look": of_first, "second look": of_second}
    final = np.sum(list(parts.values()), axis=0)
    return Standing(
        first_rank=place + 1,
        rank=1 + int((final > final[place]).sum()),
        hits=len(ids),
        first_score=first.hits[place].score,
        score=float(final[place]),
        parts={name: float(part[place]) for name, part in parts.items()},
    )
