"""What clients are told when there is no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fastapi.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi.exceptions import RequestValidationError

_MESSAGE = 1000
"""Characters of a message at most."""


@dataclass(eq=False)
class Refused(Exception):
    """A request that gets no answer, and why; `retry_after` in seconds, where waiting helps."""

    status: int
    message: str
    retry_after: int | None = None
    empty: bool = False
    """Whether there are no texts, for which an API may have a name of its own."""


ErrorShape: TypeAlias = "Callable[[Refused], tuple[int, dict[str, Any]]]"
"""How an API tells a problem: status and body."""


def message(problem: Refused) -> tuple[int, dict[str, Any]]:
    """Cohere's shape, and ours."""
    return problem.status, {"message": problem.message}


def answer(problem: Refused, shape: ErrorShape) -> JSONResponse:
    """The problem in the shape of one API."""
    headers = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(problem.retry_after)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status in (408, 413):
        headers["Connection"] = "close"  # the rest of the body is not wanted
    status, body = shape(problem)
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
    503: "The search engine or a remote re-ranker failed, or the server is about to stop.",
    504: "The search engine, or the explanation, did not come in time.",
}
