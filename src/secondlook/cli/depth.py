"""`secondlook depth`: quality and cost by re-ranking depth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.evaluate.depth import Depth
    from secondlook.types import Ranking


def depth(
    qrels: Annotated[str, typer.Argument(metavar="QRELS", help="Relevance judgments.")],
    first: Annotated[str, typer.Argument(metavar="FIRST_RUN", help="First-stage run.")],
    second: Annotated[
        str, typer.Argument(metavar="SECOND_RUN", help="The same candidates, re-ranked.")
    ],
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Measure, in ir-measures notation.")
    ] = "nDCG@10",
    rate: Annotated[
        float | None,
        typer.Option(help="Scored pairs per second, as `rerank` reports; adds the time per query."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot quality over cost to this .png or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show quality and cost for each re-ranking depth.

    For each depth: the measure, its upper bound for any re-ranker of these candidates (the
    ceiling), and the number of pairs scored per query. Documents below the depth keep their
    first-stage order.

    [bold]Example[/bold]

      secondlook depth qrels.tsv bm25.trec reranked.trec --rate 255
    """
    from secondlook.data import read_qrels, read_run
    from secondlook.evaluate.depth import depth_curve

    found, again = list(read_run(first)), list(read_run(second))
    curve = depth_curve(read_qrels(qrels), found, again, measure)
    costs = [_pairs_per_query(found, one.depth) for one in curve]
    if plot is not None:
        _draw(plot, curve, costs, measure, rate)
    rows = [
        {"depth": one.depth, measure: one.reached, "ceiling": one.ceiling, "pairs": cost}
        | ({"ms": 1000 * cost / rate} if rate else {})
        for one, cost in zip(curve, costs, strict=True)
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    heads = ["depth", measure, "ceiling", "pairs/query", *(["ms/query"] if rate else [])]
    table = Table(*heads, box=box.SIMPLE_HEAD)
    for row in rows:
        place, *values = row.values()
        quality = [f"{value:.4f}" for value in values[:2]]
        table.add_row(str(place), *quality, *(f"{value:,.0f}" for value in values[2:]))
    Console().print(table)


def _pairs_per_query(first: Sequence[Ranking], depth: int) -> float:
    return sum(min(depth, len(ranking.hits)) for ranking in first) / max(1, len(first))


def _draw(
    path: Path, curve: Sequence[Depth], costs: Sequence[float], measure: str, rate: float | None
) -> None:
    from secondlook.cli.plot import plotted

    spent = [1000 * cost / rate for cost in costs] if rate else costs
    with plotted(path, "milliseconds a query" if rate else "pairs a query", measure) as axes:
        axes.plot(spent, [one.reached for one in curve], marker="o", label="reached")
        axes.plot(spent, [one.ceiling for one in curve], linestyle="--", label="ceiling")
