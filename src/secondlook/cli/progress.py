"""One look for all long work: a bar on standard error, and nothing where nobody watches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")


@contextmanager
def progress(doing: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with how many more are done; shows speed and time left."""
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
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda more: bar.advance(task, more)


def track(items: Iterable[T], doing: str, unit: str, total: int | None = None) -> Iterator[T]:
    """Pass the items through and show how many have come, how fast, and the time left."""
    with progress(doing, unit, total) as advance:
        for item in items:
            yield item
            advance(1)
