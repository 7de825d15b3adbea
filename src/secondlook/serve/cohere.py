"""Cohere's v2 API."""

from math import ceil

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from secondlook.serve.api_shapes import ApiShape
from secondlook.serve.asking import Deadline, reranked, serving_of
from secondlook.serve.body import StrictRoute
from secondlook.serve.described import is_uncalibrated, max_length
from secondlook.serve.outcome import SecondLook
from secondlook.serve.problems import documented
from secondlook.serve.schemas import (
    QUERY,
    TEXTS,
    CohereError,
    FirstStageScores,
    ModelName,
    Texts,
    TopN,
    Unit,
    example,
)

router = APIRouter(route_class=StrictRoute, tags=["rerank"])
SHAPE = ApiShape(router)

_ERRORS = documented(CohereError, 400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503)


class CohereRequest(BaseModel):
    """Cohere's v2. Fields that are not named here are ignored."""

    model_config = example(model="my.ranker", query=QUERY, documents=TEXTS, top_n=1)

    model: ModelName | None = None
    """A ranker's name. A server of a single ranker answers with that one, whatever it is called."""
    query: str = Field(min_length=1)
    documents: Texts
    top_n: TopN | None = None
    max_tokens_per_doc: TopN | None = None
    """Not applied: how much of a document is read is part of the ranker."""
    raw_scores: bool = False
    """Give each result's `raw_score` too."""
    first_stage_scores: FirstStageScores = None
    """The scores by which the documents were retrieved, one for each, in their order. A ranker that
    was tuned to add them orders by both, as `secondlook rerank` and `/v1/search` do, and each
    result has its `final_score`; send all candidates then, as both are scaled over them."""


class CohereResult(BaseModel):
    """A document by its place in the request."""

    index: int
    relevance_score: Unit
    """The same as `score` of the other routes and `Ranker.predict`; `/info` says what it means."""
    raw_score: float | None = None
    """What the ranker ranks by, where `raw_scores` was asked for."""
    final_score: float | None = None
    """What the order goes by, where `first_stage_scores` were sent; none without a score."""


class ApiVersion(BaseModel):
    """Which of Cohere's APIs this is."""

    version: str


class BilledUnits(BaseModel):
    """What Cohere would have counted."""

    search_units: float


class Meta(BaseModel):
    """Beside the results."""

    api_version: ApiVersion
    billed_units: BilledUnits
    warnings: list[str] | None = None


class CohereAnswer(BaseModel):
    """Results best first."""

    model_config = example(
        id="0b6c…",
        results=[{"index": 0, "relevance_score": 0.93}],
        meta={"api_version": {"version": "2"}, "billed_units": {"search_units": 1.0}},
    )

    id: str
    results: list[CohereResult]
    meta: Meta
    partial: bool | None = None
    """True where the deadline came first: documents without a score stand last, in their order."""


@router.post("/v2/rerank", responses=_ERRORS, response_model_exclude_none=True)
async def rerank_v2(
    request: Request, body: CohereRequest, seconds: Deadline = None
) -> CohereAnswer:
    """Rank documents, as Cohere's v2 API does."""
    first = body.first_stage_scores
    look = await reranked(request, body.model, body.query, body.documents, seconds, first)
    scores, raw = look.relevance_scores.tolist(), look.raw_scores.tolist()
    final = look.final_scores(first)
    return CohereAnswer(
        id=request.state.visit.id,
        results=[
            CohereResult(
                index=place,
                relevance_score=scores[place],
                raw_score=raw[place] if body.raw_scores else None,
                final_score=final[place] if first and look.outcome.scored[place] else None,
            )
            for place in look.outcome.order(final)[: body.top_n]
        ],
        meta=meta(
            request,
            "2",
            look,
            body.model,
            cut_asked=body.max_tokens_per_doc,
            fused=first is not None,
        ),
        partial=look.outcome.partial or None,
    )


def meta(
    request: Request,
    version: str,
    look: SecondLook,
    model: str | None,
    cut_asked: int | None = None,
    *,
    fused: bool,
) -> Meta:
    """With a warning for all that a client might not expect.

    `fused` says whether the first stage's scores were sent.
    """
    outcome, reads = look.outcome, max_length(look.ranker)
    size, scored, cut = len(outcome.scored), int(outcome.scored.sum()), int((outcome.cut > 0).sum())
    unscored = "by first_stage_scores" if fused else "in the order they were sent"
    warnings = []
    if outcome.failure:
        warnings.append(f"partial: {outcome.failure}; documents stand {unscored}")
    elif outcome.partial:
        warnings.append(
            f"partial: {scored} of {size} documents were scored before the deadline; the others "
            f"stand last, {unscored}"
        )
    if cut:
        warnings.append(f"truncated: {cut} of {size} documents were longer than the ranker reads")
    if outcome.cut_query.any():
        warnings.append("truncated: the query was longer than the ranker reads")
    if model is not None and model != look.name:
        warnings.append(f"{model!r} is not served here; {look.name!r} answered")
    if cut_asked is not None and reads is None:
        warnings.append("max_tokens_per_doc was not applied: a remote ranker scored the documents")
    elif cut_asked is not None and reads is not None and cut_asked < reads:
        warnings.append(
            f"max_tokens_per_doc was not applied: this ranker reads up to {reads} tokens, as it "
            "was trained to"
        )
    if serving_of(request).score_warnings and look.ranker.fusion is not None and not fused:
        warnings.append(
            "the order is by the ranker's scores alone: it was tuned to add the first stage's; "
            "send them as first_stage_scores, or ask /v1/search"
        )
    if serving_of(request).score_warnings and is_uncalibrated(look.ranker):
        warnings.append(f"relevance_score: {look.ranker.score_meaning}")
    return Meta(
        api_version=ApiVersion(version=version),
        billed_units=BilledUnits(search_units=float(ceil(size / 100))),
        warnings=warnings or None,
    )
