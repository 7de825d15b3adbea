"""text-embeddings-inference's rerank API."""

import numpy as np
from fastapi import APIRouter, Request, Response

from secondlook.serve.asking import Deadline, mark_partial, reranked
from secondlook.serve.body import StrictRoute
from secondlook.serve.problems import TEI, Refused
from secondlook.serve.schemas import TeiRank, TeiRequest

router = APIRouter(route_class=StrictRoute, tags=["rerank"])


@router.post("/rerank", responses=TEI, response_model_exclude_none=True)
async def rerank(
    request: Request, response: Response, body: TeiRequest, seconds: Deadline = None
) -> list[TeiRank]:
    """Rank texts with the default ranker, as text-embeddings-inference does.

    Where the deadline came first, the header `X-Secondlook-Partial` says so: texts without a score
    stand last, in the order they were sent. The header `X-Secondlook-Scores` says what the scores
    were fitted on (`judgments`, `reference pairs`, …; see `/info`), or that they are raw.
    """
    look = await reranked(request, None, body.query, body.texts, seconds)
    outcome = look.outcome
    cut = outcome.cut + outcome.cut_query
    if body.truncate is False and cut.any():
        place = int(np.argmax(cut > 0))
        raise Refused(
            413, f"texts.{place} with the query is {cut[place]} tokens too long; set `truncate`"
        )
    mark_partial(response, look)
    source = look.ranker.scale.source
    response.headers["X-Secondlook-Scores"] = "raw" if body.raw_scores else source
    scores = (look.raw_scores if body.raw_scores else look.relevance_scores).tolist()
    return [
        TeiRank(
            index=place,
            score=scores[place],
            text=body.texts[place] if body.return_text else None,
        )
        for place in outcome.order()
    ]
