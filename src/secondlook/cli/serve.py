"""`secondlook serve`: serve re-rankers over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli import serve_options as options
from secondlook.cli.arguments import RANKER_HELP


def serve(
    ranker: Annotated[str, typer.Argument(help=RANKER_HELP)],
    index: Annotated[
        Path | None, typer.Option(help="Index folder, for /v1/search and the search page.")
    ] = None,
    name: options.Names = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8080,
    workers: options.Workers = 1,
    keys: options.Keys = None,
    no_keys: options.NoKeys = False,
    allow_host: options.AllowedHosts = None,
    proxy: options.Proxies = None,
    deadline: options.Deadline = 10.0,
    queue: options.Queue = 4096,
    rate: options.Rate = 0.0,
    max_connections: options.MaxConnections = 512,
    max_documents: options.MaxDocuments = 1000,
    max_characters: options.MaxCharacters = 200_000,
    max_megabytes: options.MaxMegabytes = 16.0,
    max_megabytes_in_flight: options.MaxMegabytesInFlight = 64.0,
    log_texts: options.LogTexts = False,
    score_warnings: options.ScoreWarnings = True,
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
    from secondlook.workflows.serve import serve as run

    run(
        _named(ranker, name or []),
        index=index,
        host=host,
        port=port,
        workers=workers,
        keys=keys,
        no_keys=no_keys,
        hosts=allow_host or (),
        proxies=proxy or (),
        log_texts=log_texts,
        score_warnings=score_warnings,
        deadline=deadline,
        queue=queue,
        rate=rate,
        max_connections=max_connections,
        max_documents=max_documents,
        max_characters=max_characters,
        max_megabytes=max_megabytes,
        max_megabytes_in_flight=max_megabytes_in_flight,
    )


def _named(ranker: str, more: list[str]) -> dict[str, str]:
    """Rankers by name; the first has its folder's, its hub id's, or its host's and model's."""
    from secondlook.score.open_ranker import name_of

    rankers = {name_of(ranker): ranker}
    for entry in more:
        name, equals, source = entry.partition("=")
        if not (name and equals and source):
            raise typer.BadParameter(f"{entry!r} is not NAME=RANKER", param_hint="--name")
        if name in rankers:
            raise typer.BadParameter(f"two re-rankers are named {name!r}", param_hint="--name")
        rankers[name] = source
    return rankers
