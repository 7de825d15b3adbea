"""`secondlook wire`: files that make a search engine ask a ranker."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class SearchEngine(StrEnum):
    """What takes the first look."""

    opensearch = "opensearch"
    elasticsearch = "elasticsearch"
    vespa = "vespa"


def wire(
    engine: Annotated[SearchEngine, typer.Argument(help="What takes the first look.")],
    ranker: Annotated[
        str, typer.Option(help="The ranker: the name it is served by; for vespa, its folder.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder the files go to.")],
    url: Annotated[
        str | None, typer.Option(help="Where the engine reaches `secondlook serve`; not for vespa.")
    ] = None,
    field: Annotated[str, typer.Option(help="The field that holds a document's text.")] = "text",
) -> None:
    """Write what a search engine needs to take the second look by itself.

    For OpenSearch: a connector, its model, a search pipeline and a sample query; for Elasticsearch:
    an inference endpoint and a sample query with a retriever; both with a script, apply.sh, that
    sends them. For Vespa: an application package that runs the ranker's ONNX export.

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
                "say where the server is, as in http://ranker:8080", param_hint="--url"
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
