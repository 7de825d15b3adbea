"""Cohere's v1 API, which shares a path with Jina's."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, FailFast, Field

from secondlook.serve.api_shapes import ApiShape
from secondlook.serve.asking import Deadline, reranked
from secondlook.serve.body import StrictRoute
from secondlook.serve.cohere import CohereResult, Meta, meta
from secondlook.serve.problems import Refused, documented
from secondlook.serve.schemas import (
    QUERY,
    TEXTS,
    CohereError,
    FirstStageScores,
    ModelName,
    TopN,
    example,
)


class TextDocument(BaseModel):
    """A document as an object; other fields than the text are ignored."""

    text: str


class JinaRequest(BaseModel):
    """Cohere's v1 and Jina's. Fields that are not named here are ignored."""

    model_config = example(
        model="my.ranker", query=QUERY, documents=TEXTS, top_n=1, return_documents=True
    )

    model: ModelName | None = None
    query: str = Field(min_length=1)
    documents: Annotated[list[str | TextDocument], FailFast()]
    top_n: TopN | None = None
    return_documents: bool | None = None
    """Of the two APIs, Cohere's default counts: no."""
    raw_scores: bool = False
    """Give each result's `raw_score` too."""
    first_stage_scores: FirstStageScores = None
    """The scores by which the documents were retrieved, one for each, in their order. A ranker that
    was tuned to add them orders by both, as `secondlook rerank` and `/v1/search` do, and each
    result has its `final_score`; send all candidates then, as both are scaled over them."""


class JinaResult(CohereResult):
    """The same, with its text where that was asked for."""

    document: TextDocument | None = None


class Usage(BaseModel):
    """What the ranker read."""

    total_tokens: int


class JinaAnswer(BaseModel):
    """The union of Cohere's v1 and Jina's answers."""

    id: str
    model: str
    usage: Usage
    results: list[JinaResult]
    meta: Meta
    partial: bool | None = None


class JinaError(CohereError):
    """The same, where Jina's clients look for it too."""

    detail: str


def error(problem: Refused) -> tuple[int, dict[str, Any]]:
    """The message where Cohere's clients look for it, and where Jina's do."""
    return problem.status, {"message": problem.message, "detail": problem.message}


router = APIRouter(route_class=StrictRoute, tags=["rerank"])
SHAPE = ApiShape(router, error)

_ERRORS = documented(JinaError, 400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503)


@router.post("/v1/rerank", responses=_ERRORS, response_model_exclude_none=True)
async def rerank_v1(request: Request, body: JinaRequest, seconds: Deadline = None) -> JinaAnswer:
    """Rank documents, as Cohere's v1 API and Jina's do."""
    texts = [one if isinstance(one, str) else one.text for one in body.documents]
    first = body.first_stage_scores
    look = await reranked(request, body.model, body.query, texts, seconds, first)
    scores, raw = look.relevance_scores.tolist(), look.raw_scores.tolist()
    final = look.final_scores(first)
    return JinaAnswer(
        id=request.state.visit.id,
        model=look.name,
        usage=Usage(total_tokens=int(look.outcome.tokens.sum())),
        results=[
            JinaResult(
                index=place,
                relevance_score=scores[place],
                raw_score=raw[place] if body.raw_scores else None,
                final_score=final[place] if first and look.outcome.scored[place] else None,
                document=TextDocument(text=texts[place]) if body.return_documents else None,
            )
            for place in look.outcome.order(final)[: body.top_n]
        ],
        meta=meta(request, "1", look, body.model, fused=first is not None),
        partial=look.outcome.partial or None,
    )
