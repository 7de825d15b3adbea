"""Whether it is up, whether it may get requests, what it serves, and how it fares."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

import secondlook
from secondlook.score.remote_ranker import RemoteRanker
from secondlook.serve.api_shapes import ApiShape
from secondlook.serve.asking import serving_of
from secondlook.serve.described import ServedScoreSource, score_source
from secondlook.serve.problems import documented
from secondlook.serve.schemas import CohereError
from secondlook.serve.serving import Serving

router = APIRouter(tags=["operations"])
SHAPE = ApiShape(router)


class RankerInfo(BaseModel):
    """What a ranker is."""

    name: str
    base: str
    form: str
    max_length: int | None
    """None: not known, of a remote ranker."""
    max_query_length: int | None
    """None: the query may fill the whole of `max_length`."""
    windows: bool
    scores: ServedScoreSource
    """What relevance scores were fitted on. They estimate probabilities after `judgments` and
    `positives only`; else they tell related from unrelated texts."""
    score_meaning: str
    """The same in a sentence."""


class Info(BaseModel):
    """text-embeddings-inference's, and all rankers."""

    model_id: str
    model_type: dict[str, Any]
    max_input_length: int
    max_client_batch_size: int
    max_concurrent_requests: int
    auto_truncate: bool
    version: str
    rankers: list[RankerInfo]
    engine: str | None
    """What takes the first stage, if anything does."""
    search_parameters: list[str] | None
    """What `/v1/search` takes as `parameters`; none where it takes no filters either."""


class State(BaseModel):
    """Whether requests are welcome."""

    status: str
    engine: Literal["ok", "failing"] | None = None
    """Of the search engine: `ok`, or `failing` since its last answer; none without an index."""


@router.get("/health", responses={503: {"model": State, "description": "A ranker has stopped."}})
async def health(request: Request, response: Response) -> State:
    """Whether the process works; if not, it should be started anew."""
    if all(queue.alive for queue in serving_of(request).queues.values()):
        return State(status="ok")
    response.status_code = 503
    return State(status="a ranker has stopped")


@router.get("/ready", responses={503: {"model": State, "description": "About to stop."}})
async def ready(request: Request, response: Response) -> State:
    """Whether new requests should come here.

    An engine that fails leaves a server ready: it still reranks, and says 503 to a search.
    """
    serving = serving_of(request)
    engine = serving.engine_state
    if serving.draining:
        response.status_code = 503
        return State(status="draining", engine=engine)
    return State(status="ready", engine=engine)


@router.get("/info", responses=documented(CohereError, 401, 421, 429))
async def info(request: Request) -> Info:
    """What is served, and within which limits."""
    serving = serving_of(request)
    rankers = [_describe(serving, name) for name in serving.queues]
    return Info(
        model_id=serving.default,
        model_type={"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}},
        max_input_length=rankers[0].max_length or 0,
        max_client_batch_size=serving.limits.documents,
        max_concurrent_requests=serving.limits.queue_pairs,
        auto_truncate=True,
        version=secondlook.__version__,
        rankers=rankers,
        engine=serving.index.engine if serving.index is not None else None,
        search_parameters=_search_parameters(serving),
    )


@router.get(
    "/metrics", response_class=PlainTextResponse, responses=documented(CohereError, 401, 421, 429)
)
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(serving_of(request).metrics.text(), media_type=CONTENT_TYPE_LATEST)


def _search_parameters(serving: Serving) -> list[str] | None:
    named = serving.index.parameters if serving.index is not None else None
    return None if named is None else list(named)


def _describe(serving: Serving, name: str) -> RankerInfo:
    ranker = serving.queues[name].ranker
    if isinstance(ranker, RemoteRanker):
        return RankerInfo(
            name=name,
            base=ranker.name,
            form="remote",
            max_length=None,
            max_query_length=None,
            windows=False,
            scores=score_source(ranker),
            score_meaning=ranker.score_meaning,
        )
    settings = ranker.settings
    return RankerInfo(
        name=name,
        base=settings.lineage.base,
        form=settings.form,
        max_length=settings.encode.max_length,
        max_query_length=settings.encode.max_query_length,
        windows=settings.encode.windows is not None,
        scores=score_source(ranker),
        score_meaning=ranker.score_meaning,
    )
