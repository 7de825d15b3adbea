"""What clients are told when there is no answer, each in the words of its own API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi.responses import JSONResponse

from secondlook.serve.schemas import CohereError, JinaError, TeiError

if TYPE_CHECKING:
    from fastapi.exceptions import RequestValidationError

_TEI_TYPES = {
    401: "Unauthorized",
    424: "Backend",
    429: "Overloaded",
    503: "Unhealthy",
}


_MESSAGE = 1000
"""Characters of a message at most."""


@dataclass(eq=False)
class Refused(Exception):
    """A request that gets no answer, and why; `retry_after` in seconds, where waiting helps."""

    status: int
    message: str
    retry_after: int | None = None
    empty: bool = False
    """TEI has a name of its own for a request without texts."""


def answer(path: str, problem: Refused) -> JSONResponse:
    """The problem as the API at this path would put it."""
    headers = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(problem.retry_after)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status in (408, 413):
        headers["Connection"] = "close"  # the rest of the body is not wanted
    status, body = problem.status, {"message": problem.message}
    if path == "/rerank":
        status = 424 if status == 500 else status
        kind = "Empty" if problem.empty else _TEI_TYPES.get(status, "Validation")
        body = {"error": problem.message, "error_type": kind}
    elif path == "/v1/rerank":
        body["detail"] = problem.message
    return JSONResponse(body, status, headers)


def malformed(error: RequestValidationError) -> Refused:
    """What a request of the wrong shape is told: where and what, but not its own text."""
    told = [f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors()[:5]]
    message = "; ".join(told).replace("\n", " ")[:_MESSAGE]
    return Refused(422, message or "the request has the wrong shape")


def documented(shape: type[Any], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's entries for these problems, in one API's shape."""
    return {status: {"model": shape, "description": _MEANINGS[status]} for status in statuses}


_MEANINGS = {
    400: "The body is no JSON, or holds nothing to rank.",
    401: "No key, or a wrong one.",
    404: "No such model.",
    408: "The body did not come in time.",
    413: "The body, a text, or the number of documents is beyond the server's limits.",
    415: "The body is not said to be JSON.",
    421: "The server does not answer to this host name.",
    422: "The request has the wrong shape.",
    424: "The ranker failed.",
    429: "Too much waits, or this client asks too often: try again in `Retry-After` seconds.",
    500: "The ranker failed.",
    503: "The search engine failed, or the server is about to stop.",
    504: "The search engine, or the explanation, did not come in time.",
}

COHERE = documented(CohereError, 400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503)
JINA = documented(JinaError, 400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503)
TEI = documented(TeiError, 400, 401, 408, 413, 415, 421, 422, 424, 429, 503)
SEARCH = documented(CohereError, 400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503, 504)
