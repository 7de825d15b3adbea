"""`secondlook search`: search an index from the terminal."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import By, Filters, Parameters, Routing  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from secondlook.retrieve.snippet import Snippet
    from secondlook.workflows.search import SearchHit, SearchResult

_FIRST_STAGE = {
    "bm25": "first stage",
    "vectors": "first stage, by vectors",
    "hybrid": "first stage, by BM25 and vectors",
}


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder.")],
    words: Annotated[str, typer.Argument(help="Query text.")],
    k: Annotated[int, typer.Option("-k", help="Results to show.", min=1)] = 10,
    by: By = None,
    ranker: Annotated[str | None, typer.Option(help="Re-rank with this re-ranker.")] = None,
    depth: Annotated[int | None, typer.Option(help="Hits re-ranked, default: 100.", min=1)] = None,
    filters: Filters = None,
    param: Parameters = None,
    routing: Routing = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Search an index and show the top results, matched words highlighted.

    With --ranker, first-stage and re-ranked results are shown side by side, with each document's
    change of rank. For a re-ranker that reads documents in windows, the best window is shown.

    [bold]Examples[/bold]

      secondlook search scifact.index "vitamin d and bone density" -k 5
      secondlook search scifact.index "vitamin d and bone density" --ranker my.ranker
    """
    from secondlook.retrieve.search_options import read_options
    from secondlook.workflows.search import search as run

    options = read_options(filters or (), param or (), routing)
    result = run(
        folder,
        words,
        k=k,
        ranker=ranker,
        depth=depth,
        by=by.value if by else None,
        options=options,
    )
    if as_json:
        typer.echo(json.dumps(result.to_list(), ensure_ascii=False))
    elif not result.hits:
        typer.echo(f"no results for this query: {result.why_nothing()}", err=True)
    else:
        from rich.console import Console

        Console().print(_table(result))
    if result.advice:
        typer.echo(result.advice, err=True)


def _table(result: SearchResult) -> Table:
    from rich import box
    from rich.table import Table

    columns = {_FIRST_STAGE[result.by]: result.first_stage}
    if result.reranked is not None:
        columns["re-ranked"] = result.reranked
    table = Table("", *columns, box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False)
    # Re-ranking may show more hits: of the first ones, some may be gone from a live index.
    for rank, row in enumerate(zip_longest(*columns.values()), start=1):
        table.add_row(str(rank), *(_cell(hit, result.snippet(hit)) if hit else "" for hit in row))
    return table


def _moved(ranks: int) -> tuple[str, str]:
    """How far a hit came up or went down, and the style to show it in."""
    if ranks == 0:
        return "=", "dim"
    return (f"▲{ranks}", "green") if ranks > 0 else (f"▼{-ranks}", "red")


def _cell(hit: SearchHit, snippet: Snippet) -> Text:
    from rich.text import Text

    head = Text.assemble((hit.document.id, "bold"), f"  {hit.shown_score}")
    if hit.first_rank is not None:
        head.append("  ").append(*_moved(hit.first_rank - hit.rank))
    shown = Text(snippet.text)
    for start, end in snippet.matches:
        shown.stylize("bold yellow", start, end)
    return head.append("\n").append_text(shown)
