"""Make judgments of a click log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def clicks(
    log: Annotated[
        Path,
        typer.Argument(
            help='A line for each page shown: {"query": …, "shown": […], "clicked": […]}, or the '
            "same as three columns parted by tabs, ids parted by spaces.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The folder for queries and judgments.", show_default=False
        ),
    ],
    eta: Annotated[
        float | None,
        typer.Option(help="Attention falls as 1/rank^eta; found in the log if not given.", min=0),
    ] = None,
    relevant: Annotated[
        float, typer.Option(help="Relevant is what so many of those who saw it click.", min=0.001)
    ] = 0.2,
    looks: Annotated[
        float, typer.Option(help="Judged is only what was seen so often.", min=0.001)
    ] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Make queries and judgments of a click log, position bias taken out.

    People click what stands on top. How steeply their attention falls is found from documents that
    stood at several ranks for the same query; a click then counts by how few looks it took. OUTPUT
    is in BEIR's layout, and every ranker that learns from it says that its labels are clicks.

    [bold]Examples[/bold]

      secondlook clicks log.jsonl.gz -o from-clicks
      secondlook clicks log.tsv -o from-clicks --eta 1 --looks 5
    """
    from secondlook.cli.progress import track
    from secondlook.data.clicks import read_clicks
    from secondlook.data.origin import write_made
    from secondlook.train.clicks import ClickSettings, Tally, judge

    tally = Tally.of(track(read_clicks(log), "reading", "impressions"))
    made = judge(tally, ClickSettings(eta=eta, relevant=relevant, looks=looks))
    write_made(output, made.queries, made.qrels, made.origin)
    grades = [grade for graded in made.qrels.values() for grade in graded.values()]
    figures = {
        "impressions": tally.impressions,
        "queries": len(made.queries),
        "relevant": sum(grades),
        "not relevant": len(grades) - sum(grades),
        "eta": made.seen.eta,
        "error": made.seen.error,
    }
    if as_json:
        typer.echo(json.dumps(figures))
        return
    how = f"± {made.seen.error:.2f}, from the log" if eta is None else "as given"
    typer.echo(
        f"{output}: {len(made.queries):,} of {len(tally.queries):,} queries, {sum(grades):,} "
        f"documents relevant and {len(grades) - sum(grades):,} not, from {tally.impressions:,} "
        f"impressions; attention falls as 1/rank^{made.seen.eta:.2f} ({how})"
    )
