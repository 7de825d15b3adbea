"""`secondlook retrieve`: first-stage retrieval for many queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import (  # noqa: TC001 - typer reads them
    By,
    Filters,
    Parameters,
    QueriesSource,
    Routing,
)


def retrieve(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder.")],
    queries: QueriesSource,
    output: Annotated[Path, typer.Option("--output", "-o", help="Run file to write.")],
    k: Annotated[int, typer.Option("-k", help="Documents per query.", min=1)] = 1000,
    by: By = None,
    judged: Annotated[
        str | None, typer.Option(help="Retrieve only for the queries judged in this qrels file.")
    ] = None,
    query_format: Annotated[
        str, typer.Option("--format", help="Format of the queries; auto detects it.")
    ] = "auto",
    tag: Annotated[str, typer.Option(help="Run tag in a TREC file.")] = "secondlook",
    filters: Filters = None,
    param: Parameters = None,
    routing: Routing = None,
) -> None:
    """Retrieve the top-k documents for each query and write a TREC run.

    A name that ends in .tsv gives MS MARCO's format; .gz and .zst compress. The file appears when
    it is complete.

    [bold]Examples[/bold]

      secondlook retrieve scifact.index queries.jsonl --judged qrels/test.tsv -o bm25.trec.gz
      secondlook retrieve scifact.index queries.jsonl --by hybrid -k 100 -o hybrid.trec
    """
    from secondlook.retrieve.search_options import read_options
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.retrieve import retrieve as run

    result = run(
        folder,
        queries,
        output,
        k=k,
        by=by.value if by else None,
        judged=judged,
        query_format=query_format,
        tag=tag,
        options=read_options(filters or (), param or (), routing),
        progress=Bars(),
    )
    typer.echo(result.summary())
