"""`secondlook retrieve`: first-stage retrieval for many queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import QueriesSource  # noqa: TC001 - typer reads it

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from secondlook.types import Query, Ranking, Retriever

_BATCH = 64


def retrieve(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder.")],
    queries: QueriesSource,
    output: Annotated[Path, typer.Option("--output", "-o", help="Run file to write.")],
    k: Annotated[int, typer.Option("-k", help="Documents per query.", min=1)] = 1000,
    judged: Annotated[
        str | None, typer.Option(help="Retrieve only for the queries judged in this qrels file.")
    ] = None,
    query_format: Annotated[
        str, typer.Option("--format", help="Format of the queries; auto detects it.")
    ] = "auto",
    tag: Annotated[str, typer.Option(help="Run tag in a TREC file.")] = "secondlook",
) -> None:
    """Retrieve the top-k documents for each query and write a TREC run.

    A name that ends in .tsv gives MS MARCO's format; .gz and .zst compress. The file appears when
    it is complete.

    [bold]Example[/bold]

      secondlook retrieve scifact.index queries.jsonl --judged qrels/test.tsv -o bm25.trec.gz
    """
    from secondlook.cli.progress import track
    from secondlook.data import read_qrels, read_queries, write_run
    from secondlook.retrieve import open_index

    wanted = list(read_queries(queries, query_format))
    if judged is not None:
        keep = read_qrels(judged)
        wanted = [query for query in wanted if query.id in keep]
    engine = open_index(folder)
    rankings = track(rankings_of(engine, wanted, k), "retrieving", "queries", total=len(wanted))
    write_run(output, rankings, tag=tag)
    typer.echo(f"{output}: {len(wanted):,} queries, up to {k:,} hits each")


def rankings_of(engine: Retriever, queries: Sequence[Query], k: int) -> Iterator[Ranking]:
    """One ranking per query, as they come."""
    for start in range(0, len(queries), _BATCH):
        yield from engine.retrieve(queries[start : start + _BATCH], k)
