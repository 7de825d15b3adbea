"""`secondlook train`: train a re-ranker by a recipe."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Device, Ray  # noqa: TC001 - typer reads them
from secondlook.cli.training_bar import watched

if TYPE_CHECKING:
    from secondlook.progress import Watch
    from secondlook.train.run import Job


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
    report_to: Annotated[
        list[str] | None, typer.Option(help="Experiment tracker: tensorboard, mlflow or wandb.")
    ] = None,
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

      secondlook train recipes/quickstart.toml -o my.ranker
      secondlook train recipes/cpu.toml -o my.ranker --base ./e5-small --data ./groups --dry-run
      secondlook train recipes/monobert.toml -o my.ranker --ray auto --processes 4
    """
    from secondlook.model.checkpoint import open_checkpoint

    if processes > 1 and ray is None:
        raise typer.BadParameter(
            "needs --ray; without Ray use: torchrun --nproc-per-node "
            f"{processes} -m secondlook train …",
            param_hint="--processes",
        )
    asked = _Asked(
        recipe, data or recipe.parent, output, base, device, tuple(report_to or ()), resume
    )
    if dry_run:
        from secondlook.train.plan import estimate

        with watched() as watch:
            plan = estimate(asked.job(watch))
        typer.echo(json.dumps(plan.figures()) if as_json else str(plan))
        return
    if ray is None:
        with watched() as watch:
            asked.train(watch)
    else:
        _on_ray(asked, ray, processes)
    settings = open_checkpoint(output).settings
    phases = settings.lineage.phases
    if as_json:
        made = {"ranker": str(output), "phases": [one.model_dump() for one in phases]}
        typer.echo(json.dumps(made))
        return
    typer.echo(f"{output}: trained from {settings.lineage.base}")
    for phase in phases:
        typer.echo(f"  {phase.name}{': ' + phase.figures if phase.figures else ''}")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the verb was given."""

    recipe: Path
    data: Path
    output: Path
    base: str | None
    device: str | None
    report_to: tuple[str, ...]
    resume: bool

    def job(self, watch: Watch) -> Job:
        from secondlook.train.recipe import read_recipe
        from secondlook.train.run import job

        return job(
            read_recipe(self.recipe),
            self.data,
            self.output,
            base=self.base,
            watch=watch,
            device=self.device,
            report_to=self.report_to,
        )

    def train(self, watch: Watch) -> None:
        from secondlook.train.run import train as run

        run(self.job(watch), resume=self.resume)


def _on_ray(asked: _Asked, address: str, processes: int) -> None:
    """The same by workers of a cluster; the first one's messages go into a file."""
    from functools import partial

    from secondlook.progress import Unwatched
    from secondlook.scale.ray_job import reachable
    from secondlook.scale.train import train_together

    there = replace(
        asked,
        recipe=asked.recipe.absolute(),
        data=asked.data.absolute(),
        output=asked.output.absolute(),
        base=None if asked.base is None else reachable(asked.base),
    )
    log = there.output.with_name(f"{there.output.name}.work") / "train.log"
    asked.job(Unwatched())  # what is wrong with it is said here, before anything starts
    typer.echo(f"{processes} processes on Ray; progress is logged to {log}", err=True)
    train_together(
        address,
        processes,
        partial(_as_one_of_many, there, log),
        device=asked.device,
        scratch=there.output.with_name(f".{there.output.name}.ray"),
    )


def _as_one_of_many(asked: _Asked, log: Path) -> None:
    """In a worker."""
    from secondlook.progress import Unwatched
    from secondlook.train import processes

    if not processes.first():
        asked.train(Unwatched())
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, watched(file) as watch:
        asked.train(watch)
