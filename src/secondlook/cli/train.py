"""Train a ranker by a recipe."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Device  # noqa: TC001 - typer reads it

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console
    from rich.progress import Progress, TaskID

    from secondlook.train.phase import Watch


def train(
    recipe: Annotated[Path, typer.Argument(help="The recipe, a TOML file.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the ranker goes.", show_default=False)
    ],
    base: Annotated[
        str | None, typer.Option(help="Start from this folder or hub id, not the recipe's.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where the recipe's files are, if not beside it.")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Continue what an interrupted run left in OUTPUT.work.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done and how long it would take.")
    ] = False,
    device: Device = None,
    report_to: Annotated[
        list[str] | None, typer.Option(help="Trackers: tensorboard, mlflow, wandb.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Train a ranker, one phase after the other, as the recipe says.

    Validated on the way by re-ranking; the best weights are kept, and the start where nothing was
    better. Killed at any moment, it is continued with --resume to the same result.

    [bold]Examples[/bold]

      secondlook train recipes/quickstart.toml -o my.ranker

      secondlook train recipes/cpu.toml -o my.ranker --base ./e5-small --data ./groups --dry-run
    """
    from secondlook.train.recipe import read_recipe
    from secondlook.train.run import job
    from secondlook.train.run import train as run

    with watched() as watch:
        work = job(
            read_recipe(recipe),
            data or recipe.parent,
            output,
            base=base,
            watch=watch,
            device=device,
            report_to=tuple(report_to or ()),
        )
        if dry_run:
            from secondlook.train.plan import estimate

            plan = estimate(work)
        else:
            settings = run(work, resume=resume)
    if dry_run:
        typer.echo(json.dumps(plan.figures()) if as_json else str(plan))
        return
    phases = settings.lineage.phases
    if as_json:
        made = {"ranker": str(output), "phases": [one.model_dump() for one in phases]}
        typer.echo(json.dumps(made))
        return
    typer.echo(f"{output}: trained from {settings.lineage.base}")
    for phase in phases:
        typer.echo(f"  {phase.name}{': ' + phase.figures if phase.figures else ''}")


@contextmanager
def watched() -> Iterator[Watch]:
    """A bar with loss, speed, time left and the last validation; messages stand above it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield _Bar(bar, console)


_SECONDS_BETWEEN_LINES = 60


class _Bar:
    """Shows the steps of a phase on a rich bar; in a log, which has no bar, as a line a minute."""

    def __init__(self, bar: Progress, console: Console) -> None:
        self._bar, self._console = bar, console
        self._task: TaskID | None = None
        self._items = 0
        self._began = self._logged = 0.0
        self._known: dict[str, float] = {}

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Work of this many steps begins."""
        self._items, self._began, self._known = 0, self._bar.get_time(), {}
        self._logged = self._began
        self._task = self._bar.add_task(doing, total=total, completed=done, figures="")

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """One more step, or (without items) a new figure only."""
        if self._task is None:
            return
        self._items += items
        self._known |= figures
        now = self._bar.get_time()
        shown = [f"{name} {value:.4f}" for name, value in self._known.items()]
        shown += [f"{self._items / (now - self._began):.0f} pairs/s"] if now > self._began else []
        line = " · ".join(shown)
        self._bar.update(self._task, advance=bool(items), figures=line)
        due = not items or now - self._logged >= _SECONDS_BETWEEN_LINES
        if due and not self._console.is_terminal:
            task = self._bar.tasks[self._task]
            self.say(f"{task.description} {task.completed:.0f}/{task.total:.0f} · {line}")
            self._logged = now

    def say(self, message: str) -> None:
        """A line above the bar."""
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)
