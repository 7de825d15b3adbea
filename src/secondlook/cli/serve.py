"""`secondlook serve`: serve re-rankers over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_ACCESS, _LIMITS, _OUTPUT = "Access", "Limits", "Log and warnings"


def serve(
    ranker: Annotated[str, typer.Argument(help="Re-ranker: a folder or a Hugging Face model id.")],
    index: Annotated[
        Path | None, typer.Option(help="Index folder, for /v1/search and the search page.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RANKER", help="Another re-ranker and the name that clients request it by."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; any but loopback needs --keys or --no-keys.",
            rich_help_panel=_ACCESS,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            help="Port to listen on; 0: any free port.", min=0, max=65535, rich_help_panel=_ACCESS
        ),
    ] = 8080,
    workers: Annotated[
        int,
        typer.Option(
            help="Worker processes. One uses all cores; use more on machines with several sockets.",
            min=1,
        ),
    ] = 1,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="File of API keys; see `secondlook key --help`.", rich_help_panel=_ACCESS
        ),
    ] = None,
    no_keys: Annotated[
        bool,
        typer.Option(
            "--no-keys",
            help="Accept requests without a key, from other machines, too.",
            rich_help_panel=_ACCESS,
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Host name to answer to, without port. Default: any; on 127.0.0.1 only localhost.",
            rich_help_panel=_ACCESS,
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Trusted proxy: its X-Forwarded-For header gives the client's address.",
            rich_help_panel=_ACCESS,
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Seconds until a request is answered with the scores computed so far.",
            min=0.01,
            rich_help_panel=_LIMITS,
        ),
    ] = 10.0,
    queue: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Documents that may be queued; beyond this, requests get status 429.",
            min=1,
            rich_help_panel=_LIMITS,
        ),
    ] = 4096,
    rate: Annotated[
        float,
        typer.Option(
            metavar="N",
            help="Requests per second per key, or per address without keys; 0: no limit.",
            min=0,
            rich_help_panel=_LIMITS,
        ),
    ] = 0.0,
    max_connections: Annotated[
        int,
        typer.Option(metavar="N", help="Open connections at most.", min=1, rich_help_panel=_LIMITS),
    ] = 512,
    max_documents: Annotated[
        int,
        typer.Option(
            metavar="N", help="Documents per request at most.", min=1, rich_help_panel=_LIMITS
        ),
    ] = 1000,
    max_characters: Annotated[
        int,
        typer.Option(
            metavar="N", help="Characters per document at most.", min=1, rich_help_panel=_LIMITS
        ),
    ] = 200_000,
    max_megabytes: Annotated[
        float,
        typer.Option(
            metavar="MB", help="Megabytes per request at most.", min=0.001, rich_help_panel=_LIMITS
        ),
    ] = 16.0,
    max_megabytes_in_flight: Annotated[
        float,
        typer.Option(
            metavar="MB",
            help="Megabytes of all open requests; beyond this, requests get status 429.",
            min=0.001,
            rich_help_panel=_LIMITS,
        ),
    ] = 64.0,
    log_texts: Annotated[
        bool,
        typer.Option("--log-texts", help="Also log the texts of queries.", rich_help_panel=_OUTPUT),
    ] = False,
    score_warnings: Annotated[
        bool,
        typer.Option(
            help="Add a warning to responses whose scores were not calibrated on judgments.",
            rich_help_panel=_OUTPUT,
        ),
    ] = True,
) -> None:
    """Serve a re-ranker over HTTP, compatible with Cohere's, Jina's and TEI's rerank APIs.

    POST /v2/rerank is Cohere's API, /v1/rerank Jina's and Cohere's older one, /rerank that of
    text-embeddings-inference. With --index, /v1/search retrieves and re-ranks, and / is a search
    page. /openapi.json describes all routes; /health and /ready are for probes, /metrics for
    Prometheus.

    Concurrent requests are scored in shared batches. Documents that cannot be scored before the
    deadline are returned last, without a score, and the response is marked as partial. The log is
    JSON on standard error, without the texts of requests.

    On SIGTERM the server answers the requests it has accepted, then exits. On SIGHUP it reloads
    re-rankers, index and keys without a pause; a replaced index folder is reopened automatically.

    [bold]Examples[/bold]

      secondlook serve my.ranker
      secondlook serve my.ranker --index my.index --name fast=small.ranker --keys keys.txt
      curl localhost:8080/v2/rerank -H 'content-type: application/json'
          -d '{"query": "cats", "documents": ["a cat", "a dog"]}'
    """
    from secondlook.errors import MissingExtra

    try:
        from secondlook.serve.limits import Limits
        from secondlook.serve.server import ServerSettings, run
    except ImportError as error:
        raise MissingExtra("serve", "serving") from error
    run(
        ServerSettings(
            rankers=_named(ranker, name or []),
            index=index,
            host=host,
            port=port,
            workers=workers,
            keys=keys,
            no_keys=no_keys,
            hosts=tuple(allow_host or ()),
            proxies=tuple(proxy or ()),
            limits=Limits(
                documents=max_documents,
                text_characters=max_characters,
                body_bytes=int(max_megabytes * 2**20),
                bytes_in_flight=int(max_megabytes_in_flight * 2**20),
                deadline=deadline,
                queue_pairs=queue,
                connections=max_connections,
                requests_per_second=rate,
            ),
            log_texts=log_texts,
            score_warnings=score_warnings,
        )
    )


def _named(ranker: str, more: list[str]) -> dict[str, str]:
    """Rankers by name; the first has its folder's, or its hub id's."""
    from secondlook.model.checkpoint import base_name

    rankers = {base_name(ranker): ranker}
    for one in more:
        name, equals, source = one.partition("=")
        if not (name and equals and source):
            raise typer.BadParameter(f"{one!r} is not NAME=RANKER", param_hint="--name")
        if name in rankers:
            raise typer.BadParameter(f"two re-rankers are named {name!r}", param_hint="--name")
        rankers[name] = source
    return rankers
