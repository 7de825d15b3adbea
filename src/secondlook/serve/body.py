"""A request's body: bounded in bytes, values and time while it arrives, and then it is JSON."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pydantic_core
from fastapi import HTTPException, Request
from fastapi.routing import APIRoute

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope

    from secondlook.serve.limits import Limits


@dataclass(slots=True)
class BytesInFlight:
    """The bytes of all bodies whose requests are not answered yet. For the event loop's thread."""

    limit: int
    now: int = 0


@dataclass(slots=True)
class JsonValueCounter:
    """Counts the commas of a JSON text outside of its strings: its values, but for one per list.

    A body with millions of values is so refused before any of them becomes an object.
    """

    commas: int = 0
    _in_string: bool = False
    _escape: bytes = b""

    def feed(self, part: bytes) -> None:
        """Count on; parts may end anywhere."""
        part = (self._escape + part).replace(b"\\\\", b"")
        self._escape = b"\\" if part.endswith(b"\\") else b""
        runs = part.removesuffix(b"\\").replace(b'\\"', b"").split(b'"')
        self.commas += sum(run.count(b",") for run in runs[self._in_string :: 2])
        self._in_string ^= len(runs) % 2 == 0


@dataclass(slots=True)
class BoundedBody:
    """ASGI's `receive`, until the body is too large, has too many values, or is too slow.

    Received bytes are counted: a client may say nothing of the length, or what is not so. As a
    context it holds them in flight until the request is answered.
    """

    scope: Scope
    source: Receive
    limits: Limits
    in_flight: BytesInFlight
    _values: JsonValueCounter = field(default_factory=JsonValueCounter)
    _taken: int = 0
    _whole: bool = False
    _ends: float = 0.0

    def __enter__(self) -> Self:
        self._ends = time.monotonic() + self.limits.body_seconds
        return self

    def __exit__(self, *_: object) -> None:
        self.in_flight.now -= self._taken

    async def receive(self) -> Message:
        """The next message; raises HTTPException 408, 413 or 429."""
        if self._whole:  # what comes now is the end of the connection, whenever that is
            return await self.source()
        if not self._taken:
            said = dict(self.scope["headers"]).get(b"content-length", b"")
            self._check(int(said[:20]) if said.isdigit() else 0)
        try:
            message = await asyncio.wait_for(self.source(), self._ends - time.monotonic())
        except TimeoutError as error:
            raise HTTPException(408, "the body did not come in time") from error
        if message["type"] == "http.request":
            part = message.get("body", b"")
            self._whole = not message.get("more_body", False)
            self._check(len(part))
            self._taken += len(part)
            self.in_flight.now += len(part)
            self._values.feed(part)
            if self._values.commas > self.limits.json_values:
                raise _too_large(f"{self.limits.json_values:,} JSON values")
        return message

    def _check(self, more: int) -> None:
        """Whether so many bytes may still come."""
        if self._taken + more > self.limits.body_bytes:
            raise _too_large(f"{self.limits.body_bytes:,} bytes")
        others = self.in_flight.now - self._taken
        if others and self.in_flight.now + more > self.in_flight.limit:
            raise HTTPException(
                429,
                f"requests of {others:,} bytes are being answered already; try again in a second",
                {"Retry-After": "1", "Connection": "close"},
            )


def _too_large(limit: str) -> HTTPException:
    return HTTPException(413, f"a request may have {limit} at most; send fewer documents at once")


class StrictRequest(Request):
    """A request whose JSON is JSON: UTF-8, no NaN, no lone surrogate, nesting at most 200 deep."""

    async def json(self) -> Any:  # noqa: ANN401 - JSON
        """The body; raises HTTPException 400 for anything else."""
        try:
            return pydantic_core.from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise HTTPException(400, f"the body is no JSON: {error}") from error


class StrictRoute(APIRoute):
    """A route that reads StrictRequests, and says so to clients that send something else."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's, over the stricter request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if not (kind == "application/json" or kind.endswith("+json")):
                raise HTTPException(
                    415,
                    "the body must be JSON, and say so: send the header "
                    "Content-Type: application/json (curl: -H 'content-type: application/json')",
                )
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly
