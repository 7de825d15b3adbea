"""The door every request comes through: its id, its key, its size, and what is noted of it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders

from secondlook.serve.limits import bounded
from secondlook.serve.logs import LOGGER, note
from secondlook.serve.problems import Refused, answer
from secondlook.serve.spans import span

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from secondlook.serve.serving import Serving

_OPEN = frozenset({"/health", "/ready"})
"""Probes have no key."""

_PAGE = re.compile(r"/|/page/.*")
"""A browser cannot send one before it has the page; what the page asks for then needs a key."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_SECURITY = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(slots=True)
class Visit:
    """A request, as the log will have it."""

    id: str
    facts: dict[str, Any] = field(default_factory=dict)
    """What is added to its line in the log: counts and names, and texts only if asked for."""


class Door:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, serving: Serving, paths: frozenset[str]) -> None:
        self._app = app
        self._serving = serving
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or refuse it, and note how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"]
        given = headers.get("x-request-id", "")
        visit = Visit(given if _ID.fullmatch(given) else uuid4().hex)
        scope.setdefault("state", {})["visit"] = visit
        began, status = time.monotonic(), 0

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._complete(MutableHeaders(scope=message), visit, path)
            await send(message)

        route = path if path in self._paths else "other"
        try:
            with span(f"{scope['method']} {route}", parent=headers):
                if self._welcome(path, headers, visit):
                    body = bounded(scope, receive, self._serving.limits)
                    await self._app(scope, body, answered)
                else:
                    refused = Refused(401, "this server needs a key: Authorization: Bearer KEY")
                    await answer(path, refused)(scope, receive, answered)
        except Exception:
            LOGGER.exception("failed", extra={"facts": {"id": visit.id}})
            if status:  # half an answer is out: the connection must end
                raise
            refused = Refused(500, "something failed here; the server's log says what")
            await answer(path, refused)(scope, receive, answered)
        finally:
            seconds = time.monotonic() - began
            self._count(route, status, seconds)
            note(
                "request",
                id=visit.id,
                method=scope["method"],
                route=route,
                status=status,
                ms=round(1000 * seconds, 1),
                **visit.facts,
            )

    def _welcome(self, path: str, headers: Headers, visit: Visit) -> bool:
        keys = self._serving.keys
        if keys is None or path in _OPEN or _PAGE.fullmatch(path):
            return True
        scheme, _, key = headers.get("authorization", "").partition(" ")
        holder = keys.holder(key.strip()) if scheme.lower() == "bearer" else None
        if holder is not None:
            visit.facts["key"] = holder
        return holder is not None

    def _complete(self, headers: MutableHeaders, visit: Visit, path: str) -> None:
        headers["X-Request-Id"] = visit.id
        for name, value in _SECURITY.items():
            headers[name] = value
        # the page may be kept, but is asked for again: its files must be of one version
        headers["Cache-Control"] = "no-cache" if _PAGE.fullmatch(path) else "no-store"
        if self._serving.draining:
            headers["Connection"] = "close"  # the next request of this client goes elsewhere

    def _count(self, route: str, status: int, seconds: float) -> None:
        metrics = self._serving.metrics
        metrics.requests.labels(route, str(status)).inc()
        metrics.request_seconds.labels(route).observe(seconds)
        if status >= 400:
            metrics.refused.labels(str(status)).inc()
