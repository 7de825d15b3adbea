"""The bar of a training: loss, speed, time left and the last validation."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from secondlook.progress import repeated
from secondlook.train.log import TrainingStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console
    from rich.progress import Progress, TaskID

    from secondlook.progress import Watch


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
        shown = _Bar(bar, console)
        with repeated(shown.status.line, shown.say, only_if=bar.disable):
            yield shown


class _Bar:
    """Shows the steps of a phase on a rich bar; in a log, which has no bar, as lines."""

    def __init__(self, bar: Progress, console: Console) -> None:
        self._bar, self._console = bar, console
        self._task: TaskID | None = None
        self.status = TrainingStatus()

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Work of this many steps begins."""
        self.status.begin(doing, total, done=done)
        self._task = self._bar.add_task(doing, total=total, completed=done, figures="")

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """One more step, or (without items) a new figure only."""
        if self._task is None:
            return
        self.status.step(items, figures)
        shown = " · ".join(self.status.figures())
        self._bar.update(self._task, advance=bool(items), figures=shown)
        if not items and not self._console.is_terminal:
            self.say(self.status.line())

    def say(self, message: str) -> None:
        """A line above the bar."""
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)
