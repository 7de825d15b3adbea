"""Serve re-rankers over HTTP: as a server, or as an app for a server of your own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from fastapi import FastAPI

    from secondlook.serve.limits import Limits
    from secondlook.serve.server import ServerSettings

    Rankers = str | Path | Mapping[str, str | Path]


class LimitOptions(TypedDict, total=False):
    """What clients may ask for, and the defaults."""

    deadline: float
    """Seconds until a request is answered with the scores computed so far: 10."""
    queue: int
    """Documents that may be queued; beyond this, requests get status 429: 4,096."""
    rate: float
    """Requests per second per key, or per address without keys; 0, the default: no limit."""
    max_connections: int
    """Open connections at most: 512."""
    max_documents: int
    """Documents per request at most: 1,000."""
    max_characters: int
    """Characters per document at most: 200,000."""
    max_megabytes: float
    """Megabytes per request at most: 16."""
    max_megabytes_in_flight: float
    """Megabytes of all open requests; beyond this, requests get status 429: 64."""


def serve(
    rankers: Rankers,
    *,
    index: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    workers: int = 1,
    keys: str | Path | None = None,
    no_keys: bool = False,
    hosts: Sequence[str] = (),
    proxies: Sequence[str] = (),
    log_texts: bool = False,
    score_warnings: bool = True,
    **limits: Unpack[LimitOptions],
) -> None:
    """Serve until SIGTERM or Ctrl-C; every request that was accepted is answered first.

    `rankers` is a folder, hub id or address, or several by the name that clients request them by,
    the default first. `index` adds search. `keys` is a file of API keys; without one, only this
    machine is served, unless `no_keys` is set. `hosts` are the host names to answer to (default:
    any, on loopback only its own), `proxies` the addresses whose X-Forwarded-For is believed.

    >>> import secondlook as sl
    >>> sl.serve_ranker("my.ranker", index="my.index", port=8000)  # doctest: +SKIP
    """
    settings = _settings(
        rankers,
        limits,
        index=Path(index) if index else None,
        host=host,
        port=port,
        workers=workers,
        keys=Path(keys) if keys else None,
        no_keys=no_keys,
        hosts=tuple(hosts),
        proxies=tuple(proxies),
        log_texts=log_texts,
        score_warnings=score_warnings,
    )
    from secondlook.serve.server import run

    run(settings)


def create_app(
    rankers: Rankers,
    *,
    index: str | Path | None = None,
    host: str = "127.0.0.1",
    keys: str | Path | None = None,
    no_keys: bool = False,
    hosts: Sequence[str] = (),
    log_texts: bool = False,
    score_warnings: bool = True,
    **limits: Unpack[LimitOptions],
) -> FastAPI:
    """The same as an ASGI app, for a server of your own: `uvicorn.run(create_app("my.ranker"))`.

    It installs no signal handlers, configures no log and does not limit connections. `host` is the
    address that your server listens on: any but loopback needs `keys`, or `no_keys`. At its
    shutdown it scores what it has accepted.

    >>> import secondlook as sl
    >>> app = sl.create_app("my.ranker", index="my.index")
    >>> app.title
    'secondlook'
    """
    settings = _settings(
        rankers,
        limits,
        index=Path(index) if index else None,
        host=host,
        keys=Path(keys) if keys else None,
        no_keys=no_keys,
        hosts=tuple(hosts),
        log_texts=log_texts,
        score_warnings=score_warnings,
    )
    from secondlook.serve.server import create_app as create

    return create(settings)


def _settings(rankers: Rankers, limits: LimitOptions, **options: object) -> ServerSettings:
    from secondlook.errors import MissingExtra
    from secondlook.score.open_ranker import name_of

    try:
        from secondlook.serve.server import ServerSettings
    except ImportError as error:
        raise MissingExtra("serve", "serving") from error
    if not isinstance(rankers, Mapping):
        rankers = {name_of(str(rankers)): rankers}
    sources = {name: str(source) for name, source in rankers.items()}
    return ServerSettings.model_validate(
        {"rankers": sources, "limits": _limits(**limits), **options}
    )


def _limits(
    *,
    deadline: float = 10.0,
    queue: int = 4096,
    rate: float = 0.0,
    max_connections: int = 512,
    max_documents: int = 1000,
    max_characters: int = 200_000,
    max_megabytes: float = 16.0,
    max_megabytes_in_flight: float = 64.0,
) -> Limits:
    from secondlook.serve.limits import Limits

    return Limits(
        documents=max_documents,
        text_characters=max_characters,
        body_bytes=int(max_megabytes * 2**20),
        bytes_in_flight=int(max_megabytes_in_flight * 2**20),
        deadline=deadline,
        queue_pairs=queue,
        connections=max_connections,
        requests_per_second=rate,
    )
