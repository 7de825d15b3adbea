"""An API of the server, as another package writes it: routes, schemas and its own errors."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, FailFast, Field

from secondlook.serve.api_shapes import ApiShape
from secondlook.serve.asking import Deadline, reranked
from secondlook.serve.body import StrictRoute
from secondlook.serve.problems import Refused


class Rerank(BaseModel):
    query: str = Field(min_length=1)
    input: Annotated[list[str], FailFast()]
    top_k: int | None = Field(None, ge=1)


class Ranked(BaseModel):
    index: int
    score: float


def error(problem: Refused) -> tuple[int, dict[str, Any]]:
    return problem.status, {"error": {"code": problem.status, "reason": problem.message}}


router = APIRouter(route_class=StrictRoute)
SHAPE = ApiShape(router, error)


@router.post("/acme/{version}/rerank")
async def rerank(
    request: Request, version: str, body: Rerank, seconds: Deadline = None
) -> dict[str, list[Ranked]]:
    look = await reranked(request, None, body.query, body.input, seconds)
    scores = look.relevance_scores.tolist()
    order = look.outcome.order()[: body.top_k]
    return {"data": [Ranked(index=place, score=scores[place]) for place in order]}
