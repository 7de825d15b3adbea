"""The connections: bounded in number, and none may keep the server waiting.

uvicorn has no time limit for headers that do not come, nor for answers that are not read. Both are
added here to its own protocol, whichever of its two it is; of that class these are used: `cycle`,
`config`, `connections`, `loop`, `transport`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from secondlook.serve.logs import note_sparingly

if TYPE_CHECKING:
    import asyncio

_BUSY = json.dumps({"message": "this server has no connection free; try again in a second"})


class BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's HTTP protocol, with limits of time and number.

    `limit_concurrency` of uvicorn's settings is how many connections may be open. One more closes
    that which has been without a request for longest: half-sent headers and idle clients give way
    to those that ask. Where all are being answered, the new one gets 503.
    """

    head_seconds = 10.0
    """Until a request's headers must be whole."""
    write_seconds = 30.0
    """Until a client that reads no more of its answer is cut off."""

    def __init__(self, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        super().__init__(*arguments, **more)
        self.limit_concurrency = None  # uvicorn's own way is to refuse who asks
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    @property
    def idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Make room for it, and wait for its headers."""
        super().connection_made(transport)
        self._expect_head()
        most = self.config.limit_concurrency
        if most is not None and len(self.connections) > most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Feed uvicorn; then either a request is under way, or its headers are still awaited."""
        super().data_received(data)
        if not self.idle:
            self._stop_head_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._expect_head()

    def on_response_complete(self) -> None:
        """Between two requests uvicorn's time limit for idle connections holds."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """No timer outlives its connection."""
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read: give it some time."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(
            self.write_seconds, self._abort, "answer not read in time"
        )

    def resume_writing(self) -> None:
        """It reads again."""
        self._stop_write_timer()
        super().resume_writing()

    def _expect_head(self) -> None:
        self._idle_since = self.loop.time()
        self._head_timer = self.loop.call_later(
            self.head_seconds, self._abort, "headers not sent in time"
        )

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _make_room(self) -> None:
        others = [one for one in self.connections if one is not self and one.idle]
        if others:
            min(others, key=lambda one: one._idle_since)._abort("room for another")
            return
        note_sparingly("connection refused", reason="all are being answered")
        answer = (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(_BUSY)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n{_BUSY}"
        )
        self.transport.write(answer.encode("ascii"))
        self.transport.close()

    def _abort(self, reason: str) -> None:
        note_sparingly("connection closed", reason=reason)
        self.connections.discard(self)
        self.transport.abort()
