"""The process: from settings to a listening server, its signals, and its orderly end."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from pathlib import Path  # noqa: TC003 - pydantic reads it
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import uvicorn

from secondlook.recipe import Settings
from secondlook.retrieve import open_index
from secondlook.score.ranker import Ranker
from secondlook.serve.app import build_app
from secondlook.serve.explaining import PairExplainer
from secondlook.serve.keys import Keys
from secondlook.serve.limits import Limits
from secondlook.serve.logs import log_to, note
from secondlook.serve.serving import Serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import FastAPI

_SETTINGS = "SECONDLOOK_SERVE"
"""The environment variable that hands the settings on to worker processes."""


class ServerSettings(Settings):
    """All that `secondlook serve` can be told."""

    rankers: dict[str, str]
    """Name → folder or hub id; the first is the default."""
    index: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    keys: Path | None = None
    limits: Limits = Limits()
    log_texts: bool = False
    score_warnings: bool = True


def run(settings: ServerSettings) -> None:
    """Serve until SIGTERM or Ctrl-C; every request that was taken is answered first.

    SIGHUP loads the rankers anew.
    """
    serving = open_serving(settings)  # what cannot be loaded is refused here, before any worker
    log_to()
    if settings.workers == 1:
        # uvicorn raises what ended it once more when it is done; an orderly end is exit code 0
        signal.signal(signal.SIGTERM, lambda *_: None)
        uvicorn.Server(uvicorn.Config(_app(serving), **_options(settings))).run()
        return
    with TemporaryDirectory() as shared:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        os.environ[_SETTINGS] = settings.model_dump_json()
        uvicorn.run(
            "secondlook.serve.server:worker",
            factory=True,
            workers=settings.workers,
            **_options(settings),
        )


def worker() -> FastAPI:
    """The app of one of several processes that share a socket."""
    log_to()
    return _app(open_serving(ServerSettings.model_validate_json(os.environ[_SETTINGS])))


def open_serving(settings: ServerSettings) -> Serving:
    """Load everything; raises a SecondlookError for what cannot be served."""
    return Serving(
        settings.rankers,
        Ranker.load,
        index=open_index(settings.index) if settings.index is not None else None,
        keys=Keys.read(settings.keys) if settings.keys is not None else None,
        limits=settings.limits,
        explainer=PairExplainer(),
        log_texts=settings.log_texts,
        score_warnings=settings.score_warnings,
    )


def _options(settings: ServerSettings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,  # the door keeps its own
        "server_header": False,
        "ws": "none",
        "timeout_keep_alive": 75,  # longer than most proxies keep an idle connection
    }


def _app(serving: Serving) -> FastAPI:
    app = build_app(serving)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        _on_signals(serving)
        note("serving", rankers=list(serving.queues), index=serving.index is not None)
        yield
        await serving.drain()
        note("drained")

    app.router.lifespan_context = lifespan
    return app


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
