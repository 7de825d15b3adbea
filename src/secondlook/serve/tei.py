"""text-embeddings-inference's rerank API."""

from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from secondlook.serve.api_shapes import ApiShape
from secondlook.serve.asking import Deadline, mark_partial, reranked
from secondlook.serve.body import StrictRoute
from secondlook.serve.described import score_source
from secondlook.serve.problems import Refused, documented
from secondlook.serve.schemas import QUERY, TEXTS, Texts, example


class TeiRequest(BaseModel):
    """text-embeddings-inference's. Fields that are not named here are ignored."""

    model_config = example(query=QUERY, texts=TEXTS, raw_scores=False, return_text=False)

    query: str = Field(min_length=1)
    texts: Texts
    truncate: bool | None = None
    """False: a text that is too long is refused (413). Else it is cut."""
    truncation_direction: Literal["right", "Right"] = "Right"
    """A ranker reads the beginning of what is too long, as it was trained to."""
    raw_scores: bool = False
    """Give raw scores in place of those from 0 to 1."""
    return_text: bool = False


class TeiRank(BaseModel):
    """A text by its place in the request."""

    index: int
    score: float
    text: str | None = None


class TeiError(BaseModel):
    """What went wrong, and of which kind it is."""

    error: str
    error_type: str


def error(problem: Refused) -> tuple[int, dict[str, Any]]:
    """A message and its kind; a ranker that failed is 424 here."""
    status = 424 if problem.status == 500 else problem.status
    kind = "Empty" if problem.empty else _KINDS.get(status, "Validation")
    return status, {"error": problem.message, "error_type": kind}


_KINDS = {401: "Unauthorized", 424: "Backend", 429: "Overloaded", 503: "Unhealthy"}

router = APIRouter(route_class=StrictRoute, tags=["rerank"])
SHAPE = ApiShape(router, error)

_ERRORS = documented(TeiError, 400, 401, 408, 413, 415, 421, 422, 424, 429, 503)


@router.post("/rerank", responses=_ERRORS, response_model_exclude_none=True)
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
    source = score_source(look.ranker)
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
