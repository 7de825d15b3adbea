"""`secondlook wire`: configuration that lets a search engine call a re-ranker."""

from __future__ import annotations

import re
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

    OpenSearch: a connector, its model, a search pipeline and a sample query. Elasticsearch: an
    inference endpoint and a sample query with a retriever. Both come with a script, apply.sh, that
    sends them. Vespa: an application package that runs the re-ranker's ONNX export.

    [bold]Examples[/bold]

      secondlook wire opensearch --ranker my.ranker --url http://ranker:8080 -o wiring
      secondlook wire vespa --ranker my.ranker -o application
    """
    from shutil import copyfile

    from secondlook.data.durable import replacing_file, write_at_once
    from secondlook.model.checkpoint import base_name
    from secondlook.serve import wiring

    graph: Path | None = None
    if engine is SearchEngine.vespa:
        files, graph = wiring.vespa(Path(ranker))
    else:
        if url is None or not re.fullmatch(r"https?://[^\s/\"]+(/[^\s\"]*)?", url):
            raise typer.BadParameter(
                "give the URL of the server, as in http://ranker:8080", param_hint="--url"
            )
        make = wiring.opensearch if engine is SearchEngine.opensearch else wiring.elasticsearch
        files = make(base_name(ranker), url, field)
    for place, text in files.items():
        (output / place).parent.mkdir(parents=True, exist_ok=True)
        write_at_once(output / place, text)
    if graph is not None:
        with replacing_file(output / "models" / "ranker.onnx") as half:
            copyfile(graph, half)
    typer.echo(f"{output}: {', '.join(files)}" + (", models/ranker.onnx" if graph else ""))
