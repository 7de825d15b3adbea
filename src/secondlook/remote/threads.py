"""The threads that send a client's requests, in the order the requests came."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class RequestThreads:
    """A fixed number of daemon threads, started with the first work.

    The standard library's pools are joined at exit, where a request may hang.
    """

    def __init__(self, count: int) -> None:
        self._count, self._started = count, 0
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """What `work` returns or raises; cancelled before its turn, it never begins."""
        future: Future[T] = Future()

        def once() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - told to who waits
                future.set_exception(error)

        with self._lock:
            while self._started < self._count:
                name = f"request {self._started}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
                self._started += 1
            self._work.put(once)
        return future

    def close(self) -> None:
        """The threads end after the work that is there; later work starts new ones."""
        with self._lock:
            for _ in range(self._started):
                self._work.put(None)
            self._started = 0

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # what it holds is not kept while the thread waits
