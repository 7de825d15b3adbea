"""Threads for what blocks, and may hang: nobody waits for them at the end."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Threads:
    """A fixed number of daemon threads. The standard library's pools are joined at exit."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._serve, name=f"engine {number}", daemon=True).start()

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Cancelled, work that has not begun never does."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def succeed(made: T) -> None:
            if not done.done():
                done.set_result(made)

        def fail(error: Exception) -> None:
            if not done.done():
                done.set_exception(error)

        def once() -> None:
            if done.cancelled():
                return
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                try:
                    loop.call_soon_threadsafe(succeed, work())
                except Exception as error:  # noqa: BLE001 - told to who waits
                    loop.call_soon_threadsafe(fail, error)

        self._work.put(once)
        return await done

    def close(self) -> None:
        """The threads end, each after the work it is at; nothing may be asked of them any more."""
        for _ in range(self._count):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # what it holds is not kept while the thread waits
