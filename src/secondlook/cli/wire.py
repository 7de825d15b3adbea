"""`secondlook wire`: configuration that lets a search engine call a re-ranker."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class SearchEngine(StrEnum):
    """First-stage search engines."""

    opensearch = "opensearch"
    elasticsearch = "elasticsearch"
    vespa = "vespa"


def wire(
    engine: Annotated[SearchEngine, typer.Argument(help="Search engine of the first stage.")],
    ranker: Annotated[
        str, typer.Option(help="Re-ranker: the name it is served by; for vespa, its folder.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    url: Annotated[
        str | None,
        typer.Option(help="URL at which the engine reaches `secondlook serve`; not for vespa."),
    ] = None,
    field: Annotated[str, typer.Option(help="Field that holds the text of a document.")] = "text",
) -> None:
    """Write the configuration that lets a search engine re-rank its own results.

    OpenSearch, 2.15 or later: a connector, its model, a search pipeline and a sample query.
    Elasticsearch: an inference endpoint and a sample query with a retriever. Both come with a
    script, apply.sh, that sends them. Vespa: an application package that runs the ONNX export.

    [bold]Examples[/bold]

      secondlook wire opensearch --ranker my.ranker --url http://ranker:8080 -o wiring
      secondlook wire vespa --ranker my.ranker -o application
    """
    from secondlook.workflows.wire import is_server_url
    from secondlook.workflows.wire import wire as write_wiring

    if engine is not SearchEngine.vespa and not is_server_url(url):
        raise typer.BadParameter(
            "give the URL of the server, as in http://ranker:8080", param_hint="--url"
        )
    written = write_wiring(engine.value, ranker, output, url=url, field=field)
    typer.echo(f"{output}: {', '.join(written)}")
