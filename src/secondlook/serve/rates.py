"""How often one client may come."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CLIENTS = 10_000
"""How many are remembered; whoever has not come for longest is forgotten first."""


@dataclass(slots=True)
class TokenBuckets:
    """`per_second` for each client on average, and `burst` at once. For one thread."""

    per_second: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Client → how many it had left, and when that was."""

    def take(self, client: str) -> float:
        """Take one of the client's; or take none, and say in how many seconds there is one."""
        now = self.clock()
        left, then = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self.per_second
        self._left[client] = (left if wait else left - 1, now)
        if len(self._left) > _CLIENTS:
            del self._left[next(iter(self._left))]
        return wait
