"""`secondlook report`: an HTML report of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    experiment: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT", help="TOML file that names the runs; see the example."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    seed: Annotated[int, typer.Option(help="Random seed of the resampling.", min=0)] = 0,
) -> None:
    """Write an HTML report that compares a run with a baseline.

    The page is one file and needs no network: the verdict, the figures, all queries, breakdowns,
    the depth curve, calibration, the queries with the largest gains and losses, lineage and
    commands.

    [bold]Example[/bold]

      secondlook report experiment.toml -o report.html

    [bold]experiment.toml[/bold] (the last four lines are optional)

      qrels = ["qrels/test.tsv"]
      queries = ["queries.jsonl"]
      base = ["bm25.trec"]
      new = ["reranked.trec"]
      corpus = "my.index"
      ranker = "my.ranker"
      measures = ["nDCG@10", "RR@10"]
      commands = ["secondlook rerank bm25.trec …"]
    """
    from secondlook.workflows.report import report as write_report

    typer.echo(write_report(experiment, output, seed=seed).summary())
