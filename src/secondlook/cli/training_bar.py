"""The bar of a training: loss, speed, time left and the last validation."""

from __future__ import annotations

from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from secondlook.cli.progress import lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console
    from rich.progress import Progress, TaskID

    from secondlook.progress import Watch


@contextmanager
def watched(file: IO[str] | None = None) -> Iterator[Watch]:
    """A bar with loss, speed, time left and the last validation; messages stand above it.

    Into a file go lines.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True) if file is None else Console(file=file)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = _Bar(bar, console)
        with lines(shown.line, shown.say, only_if=bar.disable):
            yield shown


class _Bar:
    """Shows the steps of a phase on a rich bar; in a log, which has no bar, as lines."""

    def __init__(self, bar: Progress, console: Console) -> None:
        self._bar, self._console = bar, console
        self._task: TaskID | None = None
        self._items = 0
        self._began = self._bar.get_time()
        self._known: dict[str, float] = {}

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Work of this many steps begins."""
        self._items, self._began, self._known = 0, self._bar.get_time(), {}
        self._task = self._bar.add_task(doing, total=total, completed=done, figures="")

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """One more step, or (without items) a new figure only."""
        if self._task is None:
            return
        self._items += items
        self._known |= figures
        self._bar.update(self._task, advance=bool(items), figures=" · ".join(self._figures()))
        if not items and not self._console.is_terminal:
            self.say(self.line())

    def line(self) -> str:
        """Where it is, for a log."""
        seconds = f"{self._bar.get_time() - self._began:.0f} s"
        if self._task is None:
            return f"preparing: {seconds}"
        task = self._bar.tasks[self._task]
        head = f"{task.description} {task.completed:.0f}/{task.total:.0f}"
        return " · ".join([head, *self._figures(), seconds])

    def _figures(self) -> list[str]:
        seconds = self._bar.get_time() - self._began
        shown = [f"{name} {value:.4f}" for name, value in self._known.items()]
        return shown + ([f"{self._items / seconds:.1f} pairs/s"] if seconds else [])

    def say(self, message: str) -> None:
        """A line above the bar."""
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)
