"""What every request passes: host, key, rate and size are checked; it is counted and logged."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders

from secondlook.serve.body import BoundedBody
from secondlook.serve.logs import LOGGER, note
from secondlook.serve.problems import Refused
from secondlook.serve.rates import TokenBuckets
from secondlook.serve.spans import span

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from secondlook.serve.api_shapes import ErrorAnswers
    from secondlook.serve.serving import Serving

_OPEN = frozenset({"/health", "/ready"})
"""Probes have no key."""

_PAGE = re.compile(r"/|/page/.*")
"""A browser cannot send one before it has the page; what the page asks for then needs a key."""

_BURST_SECONDS = 10
"""What a client has saved up at most: so many seconds of its rate, at once."""

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


class RequestMiddleware:
    """ASGI middleware around the whole app."""

    def __init__(
        self, app: ASGIApp, serving: Serving, paths: frozenset[str], answers: ErrorAnswers
    ) -> None:
        self._app = app
        self._serving = serving
        self._paths = paths
        self._answers = answers
        limits = serving.limits
        rate = limits.requests_per_second
        self._rates = TokenBuckets(rate, max(1, rate * _BURST_SECONDS)) if rate else None
        wrong = limits.wrong_keys_per_minute
        self._wrong_keys = TokenBuckets(wrong / 60, wrong)

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
                self._admit(scope, headers, visit)
                limits, in_flight = self._serving.limits, self._serving.in_flight
                with BoundedBody(scope, receive, limits, in_flight) as body:
                    await self._app(scope, body.receive, answered)
        except Refused as refused:
            await self._answers(path, refused)(scope, receive, answered)
        except Exception:
            LOGGER.exception("failed", extra={"facts": {"id": visit.id}})
            if status:  # half an answer is out: the connection must end
                raise
            failed = Refused(500, "something failed here; the server's log says what")
            await self._answers(path, failed)(scope, receive, answered)
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

    def _admit(self, scope: Scope, headers: Headers, visit: Visit) -> None:
        """Raises Refused for a wrong host, a wrong key, or a client that comes too often."""
        path = scope["path"]
        if path in _OPEN:
            return
        hosts = self._serving.hosts
        if hosts is not None and _host_name(headers.get("host", "")) not in hosts:
            raise Refused(
                421, "this server does not answer to that host name: start it with --allow-host"
            )
        address = scope["client"][0] if scope.get("client") else ""
        client = address
        if self._serving.keys is not None and not _PAGE.fullmatch(path):
            client = visit.facts["key"] = self._holder(headers, address)
        if self._rates is not None and (wait := self._rates.take(client)):
            raise Refused(429, "you ask too often", retry_after=math.ceil(wait))

    def _holder(self, headers: Headers, address: str) -> str:
        """Who holds the key that was sent.

        Addresses that send many wrong ones are told to wait; a right key is never refused, as many
        clients may share an address.
        """
        keys = self._serving.keys
        assert keys is not None
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Refused(401, "this server needs a key: Authorization: Bearer KEY")
        holder = keys.holder(key.strip())
        if holder is not None:
            return holder
        if wait := self._wrong_keys.take(address):
            raise Refused(429, "too many wrong keys", retry_after=math.ceil(wait))
        raise Refused(401, "wrong key: this server does not know it, or no longer")

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


def _host_name(host: str) -> str:
    """The Host header without its port: `example.org`, `127.0.0.1` or `[::1]`."""
    return re.sub(r":\d*$", "", host.strip()).lower()
