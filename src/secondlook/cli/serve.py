"""Serve rankers over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    ranker: Annotated[str, typer.Argument(help="A ranker: a folder or a hub id.")],
    index: Annotated[
        Path | None, typer.Option(help="An index folder, for /v1/search and the search page.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=RANKER", help="One more ranker, by the name clients ask for."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0: on all addresses, and then with --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 8080,
    workers: Annotated[
        int,
        typer.Option(
            help="Processes. One drives all cores; more are for machines of several sockets.", min=1
        ),
    ] = 1,
    keys: Annotated[
        Path | None, typer.Option(help="A file of API keys; see: secondlook key --help.")
    ] = None,
    no_keys: Annotated[
        bool,
        typer.Option("--no-keys", help="Let anybody ask, from other machines too."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name to answer to, without port. Default: any, or on 127.0.0.1 only "
            "localhost.",
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="A proxy whose X-Forwarded-For says who the client is."
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(help="Seconds until a request is answered with what is scored.", min=0.01),
    ] = 10.0,
    queue: Annotated[
        int, typer.Option(help="Documents that may wait; beyond them clients get 429.", min=1)
    ] = 4096,
    rate: Annotated[
        float,
        typer.Option(
            help="Requests per second for each key, or each address without keys; 0: no limit.",
            min=0,
        ),
    ] = 0.0,
    max_connections: Annotated[int, typer.Option(help="Open at once.", min=1)] = 512,
    max_documents: Annotated[int, typer.Option(help="In one request.", min=1)] = 1000,
    max_characters: Annotated[int, typer.Option(help="In one document.", min=1)] = 200_000,
    max_megabytes: Annotated[float, typer.Option(help="In one request.", min=0.001)] = 16.0,
    max_megabytes_in_flight: Annotated[
        float,
        typer.Option(
            help="In all requests being answered; beyond them clients get 429.", min=0.001
        ),
    ] = 64.0,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Write queries into the log too.")
    ] = False,
    score_warnings: Annotated[
        bool,
        typer.Option(help="Warn in answers of scores that were not calibrated on judgments."),
    ] = True,
) -> None:
    """Serve a ranker over HTTP, in place of Cohere's, Jina's or TEI's rerank API.

    POST /v2/rerank is Cohere's API, /v1/rerank its older one and Jina's, /rerank that of
    text-embeddings-inference; /v1/search takes both looks with an --index, and the page at / shows
    them. /openapi.json describes all; /health and /ready are for probes, /metrics for Prometheus.

    Requests that come together are scored together. What cannot be scored before the deadline comes
    back unscored at the end, and the answer says so. The log is JSON on standard error, without any
    text of a request.

    SIGTERM answers what was taken, then ends. SIGHUP loads rankers, index and keys anew, without a
    pause; a replaced index folder is opened anew by itself.

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
            raise typer.BadParameter(f"two rankers are called {name!r}", param_hint="--name")
        rankers[name] = source
    return rankers
