"""How long work tells its caller where it is: counted steps, and messages."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    ProgressCallback = Callable[[str, int, int | None], object]

T = TypeVar("T")

FIRST_LINE_AFTER, LINE_EVERY = 2.0, 30.0
"""Seconds; work that is over before the first line is silent in a log."""


class Watch(Protocol):
    """Receives the steps of a training."""

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Work of this many steps begins; after a resume some are done."""
        ...

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """One more step is done, on so many pairs or texts; figures are what is newly known."""
        ...

    def say(self, message: str) -> None:
        """Something the user must not miss."""
        ...


class Unwatched:
    """Ignores the steps of a training."""

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """Nothing."""

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """Nothing."""

    def say(self, message: str) -> None:
        """Nothing."""


class Progress:
    """Receives the progress of long work, and ignores it; the command line has one that shows bars.

    A program may pass a function `(doing, done, total)` wherever a workflow takes `progress`;
    `total` is None where it is unknown.
    """

    def counting(
        self, doing: str, unit: str, total: int | None = None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Counted work begins: gives a function to call with how many more are done."""
        return nullcontext(lambda more: None)

    def busy(self, doing: str) -> AbstractContextManager[None]:
        """Work begins that cannot be counted."""
        return nullcontext()

    def training(self) -> AbstractContextManager[Watch]:
        """A training begins: gives what receives its steps."""
        return nullcontext(Unwatched())

    def stage(self, name: str, number: int, total: int) -> None:
        """A stage of a longer job begins."""

    def say(self, message: str) -> None:
        """Something the user should read."""

    def warn(self, message: str) -> None:
        """Something the user must not miss."""
        self.say(message)

    def track(
        self, items: Iterable[T], doing: str, unit: str, total: int | None = None
    ) -> Iterator[T]:
        """Pass the items through, and count them."""
        with self.counting(doing, unit, total) as advance:
            for item in items:
                yield item
                advance(1)


class CallbackProgress(Progress):
    """Calls a function with what is being done, how many are done, and of how many."""

    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback

    def counting(
        self, doing: str, unit: str, total: int | None = None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Call with 0 at once, then with every advance."""
        counter = _Counter(self._callback, doing, total)
        counter.advance(0)
        return nullcontext(counter.advance)

    def stage(self, name: str, number: int, total: int) -> None:
        """Call with the number of the stage."""
        self._callback(name, number, total)

    def busy(self, doing: str) -> AbstractContextManager[None]:
        """Call once."""
        self._callback(doing, 0, None)
        return nullcontext()

    def training(self) -> AbstractContextManager[Watch]:
        """Call with every step."""
        return nullcontext(_CountedTraining(self._callback))


class _Counter:
    def __init__(self, callback: ProgressCallback, doing: str, total: int | None) -> None:
        self._callback, self._doing, self._total, self._done = callback, doing, total, 0

    def advance(self, more: int) -> None:
        self._done += more
        self._callback(self._doing, self._done, self._total)


class _CountedTraining(Unwatched):
    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback
        self._counter: _Counter | None = None

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        self._counter = _Counter(self._callback, doing, total)
        self._counter.advance(done)

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        if self._counter is not None and items:
            self._counter.advance(1)


def as_progress(given: Progress | ProgressCallback | None) -> Progress:
    """The progress that a caller gave as an object, as a function, or not at all."""
    if isinstance(given, Progress):
        return given
    return Progress() if given is None else CallbackProgress(given)


@contextmanager
def repeated(
    line: Callable[[], str], write: Callable[[str], object], *, only_if: bool = True
) -> Iterator[None]:
    """Write a line soon after the start and every half minute, however long one step takes."""
    if not only_if:
        yield
        return
    over = threading.Event()

    def tell() -> None:
        pause = FIRST_LINE_AFTER
        while not over.wait(pause):
            write(line())
            pause = LINE_EVERY

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
