"""The steps of a training as lines of text."""

from __future__ import annotations

from contextlib import contextmanager
from time import monotonic
from typing import IO, TYPE_CHECKING

from secondlook.progress import repeated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from secondlook.progress import Watch


class TrainingStatus:
    """Counts the steps of a training, and tells in a line where it is."""

    def __init__(self) -> None:
        self._doing: str | None = None
        self._total = self._done = self._items = 0
        self._began = monotonic()
        self._known: dict[str, float] = {}

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Work of this many steps begins."""
        self._doing, self._total, self._done = doing, total, done
        self._items, self._began, self._known = 0, monotonic(), {}

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """One more step, or (without items) a new figure only."""
        self._done += bool(items)
        self._items += items
        self._known |= figures

    def figures(self) -> list[str]:
        """What was last measured, and the speed."""
        seconds = monotonic() - self._began
        shown = [f"{name} {value:.4f}" for name, value in self._known.items()]
        return shown + ([f"{self._items / seconds:.1f} pairs/s"] if seconds else [])

    def line(self) -> str:
        """Steps, figures and time."""
        seconds = f"{monotonic() - self._began:.0f} s"
        if self._doing is None:
            return f"preparing: {seconds}"
        return " · ".join([f"{self._doing} {self._done}/{self._total}", *self.figures(), seconds])


class _Log:
    """Writes every message and every new figure to a file."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.status = TrainingStatus()

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Work of this many steps begins."""
        self.status.begin(doing, total, done=done)

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """A line only where there is a new figure."""
        self.status.step(items, figures)
        if not items:
            self.say(self.status.line())

    def say(self, message: str) -> None:
        """A line."""
        self._file.write(f"{message}\n")
        self._file.flush()


@contextmanager
def logged(file: IO[str]) -> Iterator[Watch]:
    """Gives what writes a training into a file; also a line every half minute."""
    log = _Log(file)
    with repeated(log.status.line, log.say):
        yield log
