"""text-embeddings-inference's rerank API."""

import numpy as np
from fastapi import APIRouter, Request, Response

from secondlook.serve.asking import Deadline, mark_partial, reranked
from secondlook.serve.body import StrictRoute
from secondlook.serve.problems import TEI, Refused
from secondlook.serve.schemas import TeiRank, TeiRequest
from secondlook.serve.serving import SecondLook

router = APIRouter(route_class=StrictRoute, tags=["rerank"])


@router.post("/rerank", responses=TEI, response_model_exclude_none=True)
async def rerank(
    request: Request, response: Response, body: TeiRequest, seconds: Deadline = None
) -> list[TeiRank]:
    """Rank texts with the default ranker, as text-embeddings-inference does.

    Where the deadline came first, the header `X-Secondlook-Partial` says so: texts without a score
    stand last, in the order they were sent.
    """
    look = await reranked(request, None, body.query, body.texts, seconds)
    outcome = look.outcome
    if body.truncate is False and outcome.cut.any():
        place = int(np.argmax(outcome.cut > 0))
        raise Refused(
            413, f"texts.{place} is {outcome.cut[place]} tokens too long; set `truncate` to cut it"
        )
    mark_partial(response, look)
    scores = (_raw_scores(look) if body.raw_scores else look.unit_scores).tolist()
    return [
        TeiRank(
            index=place,
            score=scores[place],
            text=body.texts[place] if body.return_text else None,
        )
        for place in outcome.order()
    ]


def _raw_scores(look: SecondLook) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """What has no score gets the lowest that was given, so that the order holds."""
    outcome = look.outcome
    lowest = outcome.scores[outcome.scored].min(initial=np.inf) if outcome.scored.any() else 0.0
    return np.where(outcome.scored, outcome.scores, np.float32(lowest))
