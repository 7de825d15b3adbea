"""How much a client may ask for, and what is no request at all."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic_core
from fastapi import HTTPException, Request
from fastapi.routing import APIRoute

from secondlook.serve.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold, and how long it may take."""

    documents: int = 1000
    text_characters: int = 200_000
    query_characters: int = 10_000
    body_bytes: int = 16 * 2**20
    body_seconds: float = 30.0
    """Until the whole body must be here."""
    deadline: float = 10.0
    """Seconds until a request is answered with what is scored by then."""
    queue_pairs: int = 4096
    """How many documents may wait, over all requests."""

    def check(self, query: str, texts: Sequence[str]) -> None:
        """Raises Refused where there is nothing to rank, or too much."""
        if not texts:
            raise Refused(400, "there is nothing to rank: give one document at least", empty=True)
        if len(texts) > self.documents:
            raise Refused(
                413,
                f"{len(texts):,} documents are more than the {self.documents:,} this server ranks "
                "at once; send the best of them, or several requests",
            )
        if len(query) > self.query_characters:
            raise Refused(
                413,
                f"the query has {len(query):,} characters; this server takes "
                f"{self.query_characters:,}",
            )
        for place, text in enumerate(texts):
            if len(text) > self.text_characters:
                raise Refused(
                    413,
                    f"document {place} has {len(text):,} characters; this server takes "
                    f"{self.text_characters:,}: send its passages as documents",
                )


def bounded(scope: Scope, receive: Receive, limits: Limits) -> Receive:
    """The same messages, until the body is too large or too slow.

    Received bytes are counted: a client may say nothing of the length, or what is not so.
    """
    ends = time.monotonic() + limits.body_seconds
    taken, whole = 0, False
    too_large = HTTPException(413, f"a request may have {limits.body_bytes:,} bytes at most")
    said = dict(scope["headers"]).get(b"content-length", b"")

    async def checked() -> Message:
        nonlocal taken, whole
        if whole:  # what comes now is the end of the connection, whenever that is
            return await receive()
        if said.isdigit() and int(said[:20]) > limits.body_bytes:
            raise too_large
        try:
            message = await asyncio.wait_for(receive(), ends - time.monotonic())
        except TimeoutError as error:
            raise HTTPException(408, "the body did not come in time") from error
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            whole = not message.get("more_body", False)
        if taken > limits.body_bytes:
            raise too_large
        return message

    return checked


class StrictRequest(Request):
    """A request whose JSON is JSON: UTF-8, no NaN, no lone surrogate, nesting at most 200 deep."""

    async def json(self) -> Any:  # noqa: ANN401 - JSON
        """The body; raises HTTPException 400 for anything else."""
        try:
            return pydantic_core.from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise HTTPException(400, f"the body is no JSON: {error}") from error


class StrictRoute(APIRoute):
    """A route that reads StrictRequests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's, over the stricter request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly
