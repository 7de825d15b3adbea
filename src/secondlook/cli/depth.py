"""`secondlook depth`: quality and cost by re-ranking depth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from secondlook.workflows.depth import DepthCurve


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
        typer.Option(
            help="Scored pairs per second, as `rerank` reports; adds the time per query.", min=1e-6
        ),
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
    from secondlook.workflows.depth import depth as depth_curve

    if plot is not None:
        from secondlook.evaluate.curve import refuse_picture

        refuse_picture(plot)
    curve = depth_curve(qrels, first, second, measure=measure, rate=rate)
    if plot is not None:
        _draw(plot, curve)
    if as_json:
        typer.echo(json.dumps(curve.to_dict()))
        return
    from rich.console import Console

    Console().print(curve.table())


def _draw(path: Path, curve: DepthCurve) -> None:
    from secondlook.evaluate.curve import plotted

    label = "milliseconds a query" if curve.rate else "pairs a query"
    with plotted(path, label, curve.measure) as axes:
        reached = [point.reached for point in curve.points]
        axes.plot(curve.costs, reached, marker="o", label="reached")
        ceilings = [point.ceiling for point in curve.points]
        axes.plot(curve.costs, ceilings, linestyle="--", label="ceiling")
