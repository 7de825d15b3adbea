"""Both looks in one call."""

import time

from fastapi import APIRouter, Request

from secondlook.serve.asking import Deadline, jot, serving_of
from secondlook.serve.limits import StrictRoute
from secondlook.serve.problems import SEARCH, Refused
from secondlook.serve.schemas import Passage, SearchAnswer, SearchHit, SearchRequest
from secondlook.serve.serving import SecondLook, unless_gone
from secondlook.types import Document, Query, Ranking

router = APIRouter(route_class=StrictRoute, tags=["search"])


@router.post("/v1/search", responses=SEARCH)
async def search(request: Request, body: SearchRequest, seconds: Deadline = None) -> SearchAnswer:
    """Find the best hits of the index, and rank them.

    Every hit has both ranks and both scores. Where the deadline came before the last score, hits
    without one stand last, in the first look's order, and the answer is `partial`.
    """
    return await unless_gone(request.receive, _search(request, body, seconds))


async def _search(request: Request, body: SearchRequest, seconds: float | None) -> SearchAnswer:
    serving = serving_of(request)
    until = serving.until(seconds)
    serving.limits.check(body.query, [""])
    if body.explain and serving.explainer is None:
        raise Refused(422, "this server explains nothing: ask without `explain`")
    name, query = serving.name_of(body.model), Query("search", body.query)
    began = time.monotonic()
    found, texts = await serving.first_look(query, max(body.k, body.depth), until)
    between = time.monotonic()
    look = await serving.second_look(name, query, texts, until)
    took = time.monotonic() - between
    jot(request, body.query, look)
    hits = _hits(found, texts, look, body.k)
    if body.explain:
        by_id = {one.id: one for one in texts}
        shown = [by_id[hit.id] for hit in hits]
        for hit, said in zip(hits, await serving.explain(look, query, shown), strict=True):
            hit.explanation = said
    return SearchAnswer(
        id=request.state.visit.id,
        model=look.name,
        hits=hits,
        found=len(texts),
        partial=look.outcome.partial,
        first_look_ms=round(1000 * (between - began), 3),
        second_look_ms=round(1000 * took, 3),
    )


def _hits(found: Ranking, texts: list[Document], look: SecondLook, k: int) -> list[SearchHit]:
    outcome, scores = look.outcome, look.unit_scores.tolist()
    hits = []
    for rank, place in enumerate(outcome.order()[:k], start=1):
        document, scored = texts[place], bool(outcome.scored[place])
        start, end = outcome.passages[place]
        hits.append(
            SearchHit(
                id=document.id,
                rank=rank,
                score=scores[place] if scored else None,
                raw_score=float(outcome.scores[place]) if scored else None,
                first_rank=place + 1,
                first_score=found.hits[place].score,
                title=document.title,
                text=document.text,
                passage=Passage(start=start, end=end, text=document.text[start:end])
                if outcome.windows[place] > 1
                else None,
                cut_tokens=int(outcome.cut[place]),
            )
        )
    return hits
