"""Both looks in one call, and why a hit scored as it did."""

import time
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, FailFast, Field

from secondlook.errors import WrongArgument
from secondlook.explain import Mark
from secondlook.rank.fusion import second_look
from secondlook.retrieve.search_options import SearchOptions
from secondlook.score.remote_ranker import RemoteRanker
from secondlook.serve.api_shapes import ApiShape
from secondlook.serve.asking import Deadline, jot, serving_of
from secondlook.serve.body import StrictRoute
from secondlook.serve.outcome import SecondLook
from secondlook.serve.problems import Refused, documented
from secondlook.serve.schemas import QUERY, TEXTS, CohereError, ModelName, Unit, example
from secondlook.serve.serving import unless_gone
from secondlook.types import Document, Query, Ranking

router = APIRouter(route_class=StrictRoute, tags=["search"])
SHAPE = ApiShape(router)

_ERRORS = documented(CohereError, 400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503, 504)

Filters = Annotated[list[dict[str, Any]], FailFast(), Field(max_length=100)]

_MARKED = 5_000
"""Characters of a document that are marked where no passage of it was chosen."""


class SearchRequest(BaseModel):
    """Both looks in one call."""

    model_config = example(query=QUERY, k=10, depth=100)

    query: str = Field(min_length=1)
    model: ModelName | None = None
    k: int = Field(10, ge=1, le=1000)
    """How many hits to give back."""
    depth: int = Field(100, ge=1, le=1000)
    """How many hits of the first stage the ranker is given, at most as many documents as the server
    ranks at once. Where `k` is larger, the hits below follow in the first stage's order, without a
    score."""
    explain: bool = False
    """Why the first hits scored as they did (10, unless the server was set otherwise); takes a
    multiple of the time, and what is not ready at the deadline is left out."""
    marks: bool = False
    """Which words of the hits the query holds too, and which the vocabulary lacks; left out
    altogether where they would be late."""
    filters: Filters = []
    """Conditions that every hit has to meet, in the search engine's query language: `term`,
    `terms`, `range`, `exists`, `prefix`, `match`, `match_phrase`, `ids`, `bool`, `nested`,
    `geo_distance`, `geo_bounding_box`. For attached indexes (`secondlook attach`), as the next
    two."""
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    """Values of the query template's placeholders; `/info` names them."""
    routing: str | None = Field(None, max_length=512)
    """Which shards to search, where documents were indexed with a routing value."""


class Passage(BaseModel):
    """The part of a long document that scored highest."""

    start: int
    """In characters of the document's text."""
    end: int
    text: str


class WordMark(BaseModel):
    """A word that both texts hold, or that the ranker's vocabulary lacks."""

    start: int
    """In characters of its text, as `end`."""
    end: int
    matched: Literal["", "word", "stem"]
    outside: bool


class SearchHit(BaseModel):
    """A document, and where both stages have it."""

    id: str
    rank: int
    score: Unit | None
    """The relevance score, from 0 to 1; none below `depth`, and where the deadline came first."""
    raw_score: float | None
    """What the ranker ranks by."""
    final_score: float | None
    """What the rank goes by, as `secondlook rerank` writes it: the raw score, or where the ranker
    was tuned to be fused with the first stage, both stages' together."""
    first_rank: int
    first_score: float
    title: str
    text: str
    passage: Passage | None = None
    """None where the document was read as a whole."""
    cut_tokens: int
    """How many tokens of the document the ranker did not see."""
    explanation: dict[str, Any] | None = None
    marks: list[WordMark] | None = None
    """Of the passage where there is one, else of the document's beginning."""


class SearchAnswer(BaseModel):
    """Hits best first, in the re-ranking's order."""

    id: str
    model: str
    hits: list[SearchHit]
    found: int
    """How many hits of the first stage the ranker was given."""
    score_meaning: str
    """What the hits' `score` means, in one sentence."""
    partial: bool
    by_vectors: bool = False
    """Whether scores were computed from stored document vectors, without reading the documents."""
    by_states: bool = False
    """Whether scoring started from stored states of the documents, without reading them."""
    cascade: int | None = None
    """How many candidates the ranker scored, the nearest by document vectors, where the deadline
    left no time for all `found`; the others stand last, nearest first. Else none."""
    first_look_ms: float
    second_look_ms: float
    query_marks: list[WordMark] | None = None
    explanation_failure: str | None = None
    """Why hits have no explanation, where explaining failed."""


class ExplainRequest(BaseModel):
    """A query and a document's text."""

    model_config = example(query=QUERY, text=TEXTS[0])

    query: str = Field(min_length=1)
    text: str
    title: str = ""
    """Read as the ranker reads titles, but not taken apart."""
    model: ModelName | None = None


class ExplainAnswer(BaseModel):
    """Why they score as they do."""

    id: str
    model: str
    explanation: dict[str, Any]
    """As `secondlook explain --json` has it."""


@router.post("/v1/search", responses=_ERRORS)
async def search(request: Request, body: SearchRequest, seconds: Deadline = None) -> SearchAnswer:
    """Find the best hits of the index, and rank them.

    Every hit down to `depth` has both ranks and both scores. Where the deadline came before the
    last score, hits without one stand below those, in the first stage's order, and the answer is
    `partial`. An index with vectors chooses then what is scored (`cascade`).
    """
    return await unless_gone(request.receive, _search(request, body, seconds))


async def _search(request: Request, body: SearchRequest, seconds: float | None) -> SearchAnswer:
    serving = serving_of(request)
    until = serving.until(seconds)
    serving.limits.check(body.query, [""])
    if (body.explain or body.marks) and serving.explainer is None:
        raise Refused(422, "this server explains nothing: ask without `explain` and `marks`")
    name, query = serving.name_of(body.model), Query("search", body.query)
    options = _options(body)
    began = time.monotonic()
    found, texts = await serving.first_look(query, max(body.k, body.depth), until, options)
    between = time.monotonic()
    candidates = texts[: min(body.depth, serving.limits.documents)]
    look = await serving.second_stage.score(name, query, candidates, until, indexed=True)
    took = time.monotonic() - between
    jot(request, body.query, look)
    hits = _hits(found, texts, look, body.k)
    query_marks, explained = None, None
    with suppress(TimeoutError):  # hits are worth more than what is said of them
        if body.marks:
            read = [hit.passage.text if hit.passage else hit.text[:_MARKED] for hit in hits]
            of_query, of_hits = await serving.mark(look.ranker, query, read, until)
            query_marks = _wire(of_query)
            for hit, marks in zip(hits, of_hits, strict=True):
                hit.marks = _wire(marks)
    if body.explain:
        by_id = {one.id: one for one in texts}
        first = hits[: serving.limits.explained_hits]
        shown = [by_id[hit.id] for hit in first if hit.score is not None]  # unscored ones are last
        explained = await serving.explain(look.ranker, query, shown, until)
        for hit, one in zip(hits, explained.said, strict=False):
            hit.explanation = one
    return SearchAnswer(
        id=request.state.visit.id,
        model=look.name,
        hits=hits,
        found=len(candidates),
        score_meaning=look.ranker.score_meaning,
        partial=look.outcome.partial,
        by_vectors=look.by_vectors,
        by_states=look.by_states,
        cascade=int(look.outcome.scored.sum()) if look.cascade else None,
        first_look_ms=round(1000 * (between - began), 3),
        second_look_ms=round(1000 * took, 3),
        query_marks=query_marks,
        explanation_failure=explained.failure if explained is not None else None,
    )


@router.post("/v1/explain", responses=_ERRORS)
async def explain(
    request: Request, body: ExplainRequest, seconds: Deadline = None
) -> ExplainAnswer:
    """Say why a text scores as it does: its words, its windows, and where torch runs, attention.

    The text is scored once more without each of its words.
    """
    serving = serving_of(request)
    serving.limits.check(body.query, [body.title + body.text])
    name = serving.name_of(body.model)
    ranker, query = serving.queues[name].ranker, Query("explain", body.query)
    document = Document("", body.text, body.title)
    work = serving.explain(ranker, query, [document], serving.until(seconds))
    explained = await unless_gone(request.receive, work)
    if explained.failure is not None and isinstance(ranker, RemoteRanker):  # it may answer later
        raise Refused(503, explained.failure, retry_after=1)
    if explained.failure is not None:
        raise Refused(500, explained.failure)
    if not explained.said:
        raise Refused(504, "explaining took longer than the deadline; ask of a shorter text", 1)
    return ExplainAnswer(id=request.state.visit.id, model=name, explanation=explained.said[0])


def _options(body: SearchRequest) -> SearchOptions:
    options = SearchOptions.of(body.filters, body.parameters, body.routing)
    try:
        options.refuse_unsafe()
    except WrongArgument as unsafe:
        raise Refused(422, str(unsafe)) from unsafe
    return options


def _wire(marks: list[Mark]) -> list[WordMark]:
    return [WordMark.model_validate(asdict(mark)) for mark in marks]


def _hits(found: Ranking, texts: list[Document], look: SecondLook, k: int) -> list[SearchHit]:
    """The first texts were scored; those below the depth follow as they stand."""
    outcome, scores = look.outcome, look.relevance_scores.tolist()
    depth = len(outcome.scored)
    places = {document.id: place for place, document in enumerate(texts)}
    scored = np.flatnonzero(outcome.scored)
    first = Ranking(found.query_id, tuple(found.hits[place] for place in scored))
    final = second_look(first, outcome.scores[scored], look.ranker.fusion)
    order: list[tuple[int, float | None]]
    order = [(places[hit.doc_id], hit.score) for hit in final.hits]
    rest = look.cascade or range(depth)
    order += [(place, None) for place in rest if not outcome.scored[place]]
    order += [(place, None) for place in range(depth, len(texts))]
    hits = []
    for rank, (place, final_score) in enumerate(order[:k], start=1):
        document = texts[place]
        hit = SearchHit(
            id=document.id,
            rank=rank,
            score=None,
            raw_score=None,
            final_score=final_score,
            first_rank=place + 1,
            first_score=found.hits[place].score,
            title=document.title,
            text=document.text,
            cut_tokens=0,
        )
        if final_score is not None:
            hit.score, hit.raw_score = scores[place], float(outcome.scores[place])
            hit.cut_tokens = int(outcome.cut[place])
            if outcome.windows[place] > 1:
                start, end = outcome.passages[place]
                hit.passage = Passage(start=start, end=end, text=document.text[start:end])
        hits.append(hit)
    return hits
