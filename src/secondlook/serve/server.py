"""The process: from settings to a listening server, its signals, and its orderly end."""

from __future__ import annotations

import asyncio
import errno
import gc
import math
import os
import signal
import socket
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path  # noqa: TC003 - pydantic reads it
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import uvicorn

from secondlook.errors import SecondlookError
from secondlook.recipe import Settings
from secondlook.score.open_ranker import open_ranker
from secondlook.serve.app import build_app
from secondlook.serve.explaining import PairExplainer
from secondlook.serve.index import ServedIndex
from secondlook.serve.limits import Limits
from secondlook.serve.logs import log_to, note, note_sparingly
from secondlook.serve.protocol import BoundedProtocol
from secondlook.serve.serving import Serving

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from fastapi import FastAPI

_SETTINGS = "SECONDLOOK_SERVE"
"""The environment variable that hands the settings on to worker processes."""

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""What a server that listens on loopback is called, or else as it was told to listen; by another
name, a web page is asking."""

_FILES = 128
"""Open files that are left for everything but connections."""

_ENDING = 5
"""Seconds beyond the deadline that an end may take, for answers that are still being read."""


class ServerSettings(Settings):
    """All that `secondlook serve` can be told."""

    rankers: dict[str, str]
    """Name → folder, hub id or address; the first is the default."""
    index: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    keys: Path | None = None
    no_keys: bool = False
    """Anybody who can reach it may ask, and from other machines too."""
    hosts: tuple[str, ...] = ()
    """Host names it answers to; none: any, or on loopback only loopback's own."""
    proxies: tuple[str, ...] = ()
    """Addresses whose X-Forwarded-For is believed."""
    limits: Limits = Limits()
    log_texts: bool = False
    score_warnings: bool = True


def run(settings: ServerSettings) -> None:
    """Serve until SIGTERM or Ctrl-C; every request that was taken is answered first.

    SIGHUP loads keys, index and rankers anew. Raises a SecondlookError where it cannot begin.
    """
    _refuse_open_access(settings)
    serving = open_serving(settings)  # what cannot be loaded is refused here, before any worker
    listeners = listen(settings.host, settings.port)
    log_to()
    url = _url(settings.host, listeners[0])
    if settings.workers == 1:
        # uvicorn raises what ended it once more when it is done; an orderly end is exit code 0
        signal.signal(signal.SIGTERM, lambda *_: None)
        config = uvicorn.Config(_app(serving, listeners, url), **_options(settings))
        uvicorn.Server(config).run(listeners)
        return
    asyncio.run(serving.drain(_ENDING))
    del serving  # each worker loads rankers of its own; this process only watches them
    gc.collect()
    port = listeners[0].getsockname()[1]
    for listener in listeners:  # it is free; uvicorn binds one for all workers itself
        listener.close()
    with TemporaryDirectory() as shared:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        os.environ[_SETTINGS] = settings.model_dump_json()
        uvicorn.run(
            "secondlook.serve.server:worker",
            factory=True,
            workers=settings.workers,
            host=settings.host,
            port=port,
            **_options(settings),
        )


def create_app(settings: ServerSettings) -> FastAPI:
    """An app for a server that the caller runs: no signal handlers, and no log of its own.

    Of `settings`, port, workers and proxies are that server's own matter.
    """
    _refuse_open_access(settings)
    serving = open_serving(settings)
    app = build_app(serving)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await serving.drain(_ENDING)

    app.router.lifespan_context = lifespan
    return app


def worker() -> FastAPI:
    """The app of one of several processes that share a socket."""
    log_to()
    return _app(open_serving(ServerSettings.model_validate_json(os.environ[_SETTINGS])))


def open_serving(settings: ServerSettings) -> Serving:
    """Load everything; raises a SecondlookError for what cannot be served.

    An engine that cannot be reached is no reason: reranking needs none.
    """
    own = (*_LOOPBACK, _in_url(settings.host))
    hosts = settings.hosts or (own if is_loopback(settings.host) else ())
    index = ServedIndex.at(settings.index) if settings.index is not None else None
    return Serving(
        settings.rankers,
        open_ranker,
        index=index,
        keys_file=settings.keys,
        hosts=frozenset(host.lower() for host in hosts) or None,
        limits=settings.limits,
        explainer=PairExplainer(lambda: index.analyzer if index is not None else None),
        log_texts=settings.log_texts,
        score_warnings=settings.score_warnings,
    )


def _refuse_open_access(settings: ServerSettings) -> None:
    if not (settings.keys or settings.no_keys or is_loopback(settings.host)):
        raise SecondlookError(
            f"on {settings.host} other machines can reach this server, and it has no keys: give "
            "`keys`, a file that secondlook key creates, or allow requests without (`no_keys=True`)"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets for every address of the host, bound but not listening; port 0 takes a free one."""
    listeners: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, protocol)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            port = port or (listeners[0].getsockname()[1] if len(listeners) > 1 else 0)
            listener.bind((address[0], port, *address[2:]))
            listener.set_inheritable(True)
    except OSError as error:
        for listener in listeners:
            listener.close()
        hint = "take another port" if error.errno == errno.EADDRINUSE else "check the host"
        raise SecondlookError(
            f"cannot listen on {host}:{port} ({error.strerror or error}); {hint}"
        ) from error
    return listeners


def _url(host: str, listener: socket.socket) -> str:
    return f"http://{_in_url(host)}:{listener.getsockname()[1]}"


def _in_url(host: str) -> str:
    """As it stands in a URL, and so in the header of a request."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _options(settings: ServerSettings) -> dict[str, Any]:
    """For uvicorn. Connections are bounded below the number of open files, which searches need."""
    most = settings.limits.connections
    if resource is not None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = max(1, min(most, files - _FILES))
    return {
        "http": BoundedProtocol,
        "log_config": None,
        "access_log": False,  # the middleware keeps its own
        "server_header": False,
        "ws": "none",
        "limit_concurrency": most,
        "timeout_keep_alive": 75,  # longer than most proxies keep an idle connection
        "timeout_graceful_shutdown": math.ceil(settings.limits.deadline) + _ENDING,
        # else uvicorn believes X-Forwarded-For from this machine, or as FORWARDED_ALLOW_IPS says
        "proxy_headers": bool(settings.proxies),
        "forwarded_allow_ips": ",".join(settings.proxies),
    }


def _app(
    serving: Serving, listeners: Sequence[socket.socket] = (), url: str | None = None
) -> FastAPI:
    app = build_app(serving)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(_log_loop_problem)
        _on_signals(serving)
        note("serving", rankers=list(serving.queues), index=serving.index is not None)
        serving.note_unused_scores()
        if serving.index is not None and serving.index.problem is not None:
            note("search engine not reached yet", problem=serving.index.problem)
        if url is not None:
            for listener in listeners:
                listener.listen()  # before anybody reads that it does
            note(f"running on {url}")
        yield
        note("drained" if await serving.drain(_ENDING) else "ended with documents unscored")

    app.router.lifespan_context = lifespan
    return app


def _log_loop_problem(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What fails outside of any request, such as accepting a connection, is a line of the log."""
    error = context.get("exception")
    note_sparingly(str(context.get("message", "event loop")), f"{type(error).__name__}: {error}")


def _on_signals(serving: Serving) -> None:
    """SIGHUP reloads; SIGTERM and SIGINT are uvicorn's, told to the probes first."""
    loop = asyncio.get_running_loop()
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = loop.create_task(serving.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    if hasattr(signal, "SIGHUP"):  # Windows has none
        loop.add_signal_handler(signal.SIGHUP, reload)
    for number in (signal.SIGTERM, signal.SIGINT):
        then = signal.getsignal(number)

        def stop(*arguments: Any, then: Any = then) -> None:  # noqa: ANN401 - as signal has it
            serving.draining = True
            if callable(then):
                then(*arguments)

        signal.signal(number, stop)
