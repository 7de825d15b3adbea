"""Cohere's v2 API, and its v1, which shares a path with Jina's."""

from math import ceil

from fastapi import APIRouter, Request

from secondlook.model.settings import JUDGED
from secondlook.serve.asking import Deadline, reranked, serving_of
from secondlook.serve.body import StrictRoute
from secondlook.serve.problems import COHERE, JINA
from secondlook.serve.schemas import (
    ApiVersion,
    BilledUnits,
    CohereAnswer,
    CohereRequest,
    CohereResult,
    JinaAnswer,
    JinaRequest,
    JinaResult,
    Meta,
    TextDocument,
    Usage,
)
from secondlook.serve.serving import SecondLook

router = APIRouter(route_class=StrictRoute, tags=["rerank"])


@router.post("/v2/rerank", responses=COHERE, response_model_exclude_none=True)
async def rerank_v2(
    request: Request, body: CohereRequest, seconds: Deadline = None
) -> CohereAnswer:
    """Rank documents, as Cohere's v2 API does."""
    look = await reranked(request, body.model, body.query, body.documents, seconds)
    scores, raw = look.relevance_scores.tolist(), look.raw_scores.tolist()
    return CohereAnswer(
        id=request.state.visit.id,
        results=[
            CohereResult(
                index=place,
                relevance_score=scores[place],
                raw_score=raw[place] if body.raw_scores else None,
            )
            for place in look.outcome.order()[: body.top_n]
        ],
        meta=_meta(request, "2", look, body.model, cut_asked=body.max_tokens_per_doc),
        partial=look.outcome.partial or None,
    )


@router.post("/v1/rerank", responses=JINA, response_model_exclude_none=True)
async def rerank_v1(request: Request, body: JinaRequest, seconds: Deadline = None) -> JinaAnswer:
    """Rank documents, as Cohere's v1 API and Jina's do."""
    texts = [one if isinstance(one, str) else one.text for one in body.documents]
    look = await reranked(request, body.model, body.query, texts, seconds)
    scores, raw = look.relevance_scores.tolist(), look.raw_scores.tolist()
    return JinaAnswer(
        id=request.state.visit.id,
        model=look.name,
        usage=Usage(total_tokens=int(look.outcome.tokens.sum())),
        results=[
            JinaResult(
                index=place,
                relevance_score=scores[place],
                raw_score=raw[place] if body.raw_scores else None,
                document=TextDocument(text=texts[place]) if body.return_documents else None,
            )
            for place in look.outcome.order()[: body.top_n]
        ],
        meta=_meta(request, "1", look, body.model),
        partial=look.outcome.partial or None,
    )


def _meta(
    request: Request,
    version: str,
    look: SecondLook,
    model: str | None,
    cut_asked: int | None = None,
) -> Meta:
    """With a warning for all that a client might not expect."""
    outcome, reads = look.outcome, look.ranker.settings.encode.max_length
    size, scored, cut = len(outcome.scored), int(outcome.scored.sum()), int((outcome.cut > 0).sum())
    warnings = []
    if outcome.partial:
        warnings.append(
            f"partial: {scored} of {size} documents were scored before the deadline; the others "
            "stand last, in the order they were sent"
        )
    if cut:
        warnings.append(f"truncated: {cut} of {size} documents were longer than the ranker reads")
    if outcome.cut_query.any():
        warnings.append("truncated: the query was longer than the ranker reads")
    if model is not None and model != look.name:
        warnings.append(f"{model!r} is not served here; {look.name!r} answered")
    if cut_asked is not None and cut_asked < reads:
        warnings.append(
            f"max_tokens_per_doc was not applied: this ranker reads up to {reads} tokens, as it "
            "was trained to"
        )
    if serving_of(request).score_warnings and look.ranker.scale.source not in JUDGED:
        warnings.append(f"relevance_score: {look.ranker.score_meaning}")
    return Meta(
        api_version=ApiVersion(version=version),
        billed_units=BilledUnits(search_units=float(ceil(size / 100))),
        warnings=warnings or None,
    )
