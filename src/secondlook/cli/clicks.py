"""`secondlook clicks`: relevance judgments from a click log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def clicks(
    log: Annotated[
        Path,
        typer.Argument(
            help='Click log, one result page a line: {"query": …, "shown": […], "clicked": […]}, '
            "or the same as three tab-separated columns with space-separated ids.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Output folder for queries and judgments.", show_default=False
        ),
    ],
    log_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="Format of the log: jsonl, tsv, or one that an installed package adds.",
            metavar="NAME",
        ),
    ] = "auto",
    eta: Annotated[
        float | None,
        typer.Option(
            help="Position bias: examination falls as 1/rank^eta; default: estimated from the log.",
            min=0,
            max=10,
        ),
    ] = None,
    relevant: Annotated[
        float,
        typer.Option(
            help="Click-through rate, corrected for position, from which a document is relevant.",
            min=0.001,
        ),
    ] = 0.2,
    looks: Annotated[
        float,
        typer.Option(
            help="Judge a document only if it was examined at least this often.", min=0.001
        ),
    ] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Derive queries and relevance judgments from a click log, corrected for position bias.

    Users click on top results more often. Position bias is estimated from documents that were
    shown at several ranks for the same query, and click rates are corrected for it (position-based
    model). OUTPUT has BEIR's layout; every re-ranker trained on it records that its labels are
    clicks. In OUTPUT, labels of an earlier log are replaced; those of people are not overwritten.

    [bold]Examples[/bold]

      secondlook clicks log.jsonl.gz -o from-clicks
      secondlook clicks log.tsv -o from-clicks --eta 1 --looks 5
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.clicks import clicks as workflow

    result = workflow(
        log,
        output,
        log_format=log_format,
        eta=eta,
        relevant=relevant,
        looks=looks,
        progress=Bars(),
    )
    typer.echo(json.dumps(result.to_dict()) if as_json else result.summary())
