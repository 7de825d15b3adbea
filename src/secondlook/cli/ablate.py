"""`secondlook ablate`: what each part of a recipe is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ablate(
    recipe: Annotated[Path, typer.Argument(help="The full recipe: a TOML file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output folder for all trained re-rankers.")
    ],
    test: Annotated[Path, typer.Option(help="Test groups, as written by `secondlook mine --all`.")],
    seeds: Annotated[
        int,
        typer.Option(
            help="Random seeds per recipe: the recipe's own and the following ones.", min=1
        ),
    ] = 2,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Measure, in ir-measures notation.")
    ] = ("nDCG@10"),
    negatives: Annotated[
        list[int] | None,
        typer.Option(
            help="Also train the full recipe with N negatives per query; repeat for a sweep.", min=1
        ),
    ] = None,
    pairs: Annotated[
        list[int] | None,
        typer.Option(
            help="Also train the full recipe on N pairs in all; repeat for a sweep.", min=1
        ),
    ] = None,
    parts: Annotated[
        bool, typer.Option(help="Train the recipes without and with each part; else sweeps only.")
    ] = True,
    base: Annotated[str | None, typer.Option(help="Base model; default: the recipe's.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the recipe's data files; default: the recipe's folder."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Device: cpu, cuda or mps.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print what would be trained and the estimated time, then stop."
        ),
    ] = False,
) -> None:
    """Measure what each part of a training recipe contributes.

    Trains the full recipe, the recipe without each of its parts, and a plain baseline with each
    part added. All use the same random seeds, the same number of training pairs and the same
    number of pairs per step; all but those without false-negative filtering train on the same
    data. The table, laid out as table 1 of DR-BERT, has the mean and standard deviation over seeds
    and tests each recipe against the full one (Holm-adjusted). A sweep over negatives is also
    plotted, as in its figure 5, and one over the number of training pairs. If interrupted, the same
    command resumes.

    [bold]Examples[/bold]

      secondlook ablate my.toml -o ablations --test groups/test.parquet --negatives 1 --negatives 5
      secondlook ablate my.toml -o sizes --test groups/test.parquet --no-parts --pairs 1000
          --pairs 10000
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.ablate import ablate as workflow
    from secondlook.workflows.ablate import plan

    if dry_run:
        planned = plan(
            recipe,
            seeds=seeds,
            negatives=negatives or (),
            pairs=pairs or (),
            parts=parts,
            base=base,
            data=data,
            device=device,
            progress=Bars(),
        )
        typer.echo(planned.summary())
        return
    result = workflow(
        recipe,
        output,
        test,
        seeds=seeds,
        measure=measure,
        negatives=negatives or (),
        pairs=pairs or (),
        parts=parts,
        base=base,
        data=data,
        device=device,
        progress=Bars(),
    )
    if result.not_plotted:
        typer.echo(f"the sweep is not plotted: {result.not_plotted}", err=True)
    typer.echo(result.summary())
