"""From a corpus and judgments to a ranker that is known to help, or the news that none does."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import Device  # noqa: TC001 - typer reads it
from secondlook.cli.tuning import Tuning


class Repeats(StrEnum):
    """What becomes of training and validation queries that repeat a test query."""

    drop = "drop"
    refuse = "refuse"
    keep = "keep"


NOT_SHIPPED = 3
"""The exit code where the verdict is not `helps` and no ranker was put in place."""
_ADVICE = (
    "What could help: more judged queries (the verdict says how many), a greater --depth, a "
    "stronger --base, more --minutes, or `adapt` on your corpus (see `secondlook gap`)."
)


def tune(
    data: Annotated[
        Path,
        typer.Argument(
            help="A folder with corpus.jsonl, queries.jsonl and qrels/train.tsv; dev.tsv and "
            "test.tsv too, if you have them. With --clicks or --expander the corpus is enough.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for all that is made.", show_default=False),
    ],
    base: Annotated[
        str, typer.Option(help="The bi-encoder to begin with: a folder or a hub id.")
    ] = "intfloat/e5-small",
    minutes: Annotated[
        float,
        typer.Option(help="Time limit of the whole command; training gets what is left.", min=0.1),
    ] = 30.0,
    depth: Annotated[int, typer.Option(help="Hits per query that are re-ranked.", min=1)] = 100,
    ship: Annotated[
        bool, typer.Option("--ship", help="Put the ranker in place whatever the verdict.")
    ] = False,
    clicks: Annotated[
        Path | None,
        typer.Option(help="Learn from this log, as `secondlook clicks` reads it, not judgments."),
    ] = None,
    expander: Annotated[
        str | None,
        typer.Option(help="Learn from queries that this model asks, as `secondlook generate`."),
    ] = None,
    overlap: Annotated[
        Repeats,
        typer.Option(
            help="Training and validation queries that repeat a test query, under another id or "
            "nearly: drop them, refuse the data, or keep them."
        ),
    ] = Repeats.drop,
    device: Device = None,
) -> None:
    """Fine-tune a re-ranker on your data and test whether it improves your results.

    Index, retrieval, mining, training, export, calibration, fusion, comparison, report: each is
    what the verb of its own does, and its result stays in OUTPUT/stages. Interrupted, the same
    command goes on where it stopped, with --minutes anew; remove a result and it is made anew.
    Where the trained ranker is no better on the validation queries than the base as it was, the
    base goes on.

    The plan is told before the long stages. Where time is short, fewer candidates (20 at least) and
    fewer test queries (100 at least) are re-ranked; where it is too short to train, that is said.

    OUTPUT/ranker is there in the end only if it beats BM25 on queries it has not seen; otherwise
    the exit code is 3, and you learn what could help. It is tested against the untuned base, too.

    Judgments out of clicks or generated queries are marked in the ranker's lineage and card.
    People's dev.tsv and test.tsv, where DATA has them, still validate and give the verdict.

    [bold]Example[/bold]

      secondlook tune my-data -o tuned --minutes 30
      secondlook tune my-data -o by-clicks --clicks log.jsonl.gz
      secondlook serve tuned/ranker --index tuned/stages/index
    """
    from secondlook.data.lock import Hold

    if clicks is not None and expander is not None:
        raise typer.BadParameter("goes without --expander", param_hint="--clicks")
    from secondlook.train.budget import Clock

    clock = Clock(minutes * 60)
    tuning = Tuning(data, output, base, depth, device, clicks, expander, clock, overlap.value)
    output.parent.mkdir(parents=True, exist_ok=True)
    hold = Hold(output, f"every finished stage is kept in {output}; the same command goes on there")
    tuning.claim()
    for number, (name, stage) in enumerate(tuning.stages, start=1):
        typer.secho(f"[{number}/{len(tuning.stages)}] {name}", bold=True)
        stage()
    found = tuning.verdict()
    if origin := tuning.judged_by():
        typer.echo(f"The verdict rests on no person's judgments, but on {origin}.")
    typer.echo(f"report: {tuning.report}")
    if not found.tuned.acceptable() and not ship:
        typer.echo(f"No ranker is put in place. {_ADVICE}")
        raise typer.Exit(NOT_SHIPPED)
    tuning.ship()
    hold.release()
    typer.echo(
        f"{tuning.shipped} is yours. Next: secondlook serve {tuning.shipped} --index {tuning.index}"
    )
