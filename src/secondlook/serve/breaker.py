"""A circuit breaker: an engine that keeps failing is left alone for a while."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class Breaker:
    """Opens after `failures` in a row; after `rest` seconds one request tries again.

    For use in one thread: the event loop's.
    """

    failures: int = 5
    rest: float = 5.0
    clock: Callable[[], float] = time.monotonic
    _failed: int = 0
    _opened: float | None = None
    _trying: bool = False

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        """`closed` lets all pass, `open` none, `half-open` one."""
        if self._opened is None:
            return "closed"
        return "open" if self.clock() < self._opened + self.rest else "half-open"

    @property
    def failing(self) -> bool:
        """Whether the last answer was a failure."""
        return self._failed > 0

    def admit(self) -> bool:
        """Whether to ask the engine now. Whoever may, says how it went."""
        if self.state == "closed":
            return True
        if self.state == "open" or self._trying:
            return False
        self._trying = True
        return True

    def succeeded(self) -> None:
        """The engine answered."""
        self._failed, self._opened, self._trying = 0, None, False

    def failed(self) -> None:
        """The engine did not."""
        self._failed, self._trying = self._failed + 1, False
        if self._opened is not None or self._failed >= self.failures:
            self._opened = self.clock()

    def left(self) -> None:
        """Whoever asked went away before there was an answer: nothing is known."""
        self._trying = False
