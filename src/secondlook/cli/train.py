"""`secondlook train`: train a re-ranker by a recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Device, Ray, ReportTo  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from secondlook.train.estimate import Plan
    from secondlook.workflows.train import TrainResult


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe: a TOML file.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Output folder of the re-ranker.", show_default=False),
    ],
    base: Annotated[
        str | None,
        typer.Option(
            help="Base model: a folder or a Hugging Face model id; default: the recipe's."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the recipe's data files; default: the recipe's folder."),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Resume an interrupted training from OUTPUT.work.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan with estimated time, then stop.")
    ] = False,
    device: Device = None,
    report_to: ReportTo = None,
    ray: Ray = None,
    processes: Annotated[
        int,
        typer.Option(
            help="With --ray: number of training processes, each with its own `batch`.", min=1
        ),
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a re-ranker in the phases of a recipe.

    The model is validated by re-ranking during training, and the best weights are kept; if none
    beats the starting weights, those are kept. A training that was killed continues with --resume
    to the same result.

    For several GPUs or machines, use torchrun, or --ray with nodes that see the same folders.

    [bold]Examples[/bold]

      secondlook train recipes/quickstart.toml -o my.ranker --data groups
      secondlook train recipes/cpu.toml -o my.ranker --base ./e5-small --data ./groups --dry-run
      secondlook train recipes/monobert.toml -o my.ranker --data DATA --ray auto --processes 4
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.train import plan
    from secondlook.workflows.train import train as workflow

    result: Plan | TrainResult
    if dry_run:
        result = plan(recipe, base=base, data=data, device=device, progress=Bars())
    else:
        result = workflow(
            recipe,
            output,
            base=base,
            data=data,
            resume=resume,
            device=device,
            report_to=report_to or (),
            ray=ray,
            processes=processes,
            progress=Bars(),
        )
    typer.echo(json.dumps(result.to_dict()) if as_json else result.summary())
