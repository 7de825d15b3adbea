"""One look for all long work: a bar on standard error, or in a log a line every half minute."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import typer

from secondlook import progress as reported
from secondlook.progress import repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from rich.progress import Progress

    from secondlook.progress import Watch

T = TypeVar("T")


class Bars(reported.Progress):
    """Shows the progress of a workflow to a person."""

    def counting(
        self, doing: str, unit: str, total: int | None = None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """A bar, or lines in a log."""
        return progress(doing, unit, total)

    def busy(self, doing: str) -> AbstractContextManager[None]:
        """Shows that it goes on, and for how long."""
        return busy(doing)

    def training(self) -> AbstractContextManager[Watch]:
        """A bar with loss, speed, time left and the last validation."""
        from secondlook.terminal.training_bar import watched

        return watched()

    def stage(self, name: str, number: int, total: int) -> None:
        """A headline."""
        typer.secho(f"[{number}/{total}] {name}", bold=True)

    def say(self, message: str) -> None:
        """A line of the output."""
        typer.echo(message)

    def warn(self, message: str) -> None:
        """A line in yellow."""
        typer.secho(message, fg="yellow")


@contextmanager
def progress(doing: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with how many more are done; shows speed and time left.

    The speed is that since the first call, which may tell what was done before an interruption.
    """
    began, done = monotonic(), 0
    first: tuple[float, int] | None = None

    def line() -> str:
        now = monotonic()
        of = "" if total is None else f"/{total:,}"
        speed = ""
        if first and done > first[1]:
            speed = f" · {(done - first[1]) / (now - first[0]):,.1f} {unit}/s"
        return f"{doing}: {done:,}{of} {unit}{speed} · {now - began:,.0f} s"

    with _bar(unit) as bar, repeated(line, _to_log, only_if=bar.disable):
        task = bar.add_task(doing, total=total)

        def advance(more: int) -> None:
            nonlocal done, first
            done += more
            first = first or (monotonic(), done)
            bar.advance(task, more)

        yield advance


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """For work that cannot be counted: shows that it goes on, and for how long."""
    began = monotonic()

    def line() -> str:
        return f"{doing}: {monotonic() - began:,.0f} s"

    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(f"{doing} …"):
            yield
    else:
        with repeated(line, _to_log):
            yield


def track(items: Iterable[T], doing: str, unit: str, total: int | None = None) -> Iterator[T]:
    """Pass the items through and show how many have come, how fast, and the time left."""
    with progress(doing, unit, total) as advance:
        for item in items:
            yield item
            advance(1)


def _to_log(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _bar(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} {unit}/s" if speed else f"… {unit}/s")

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)
