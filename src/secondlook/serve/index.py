"""The index a server searches: opened anew when its folder was replaced, or when it came back."""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from secondlook.errors import EngineProblem, IndexProblem, MissingDocument, SecondlookError
from secondlook.rank.present import fetch_present, still_there
from secondlook.retrieve.folder import read_card
from secondlook.retrieve.hybrid import first_stage_files, open_first_stage
from secondlook.retrieve.search_options import SearchOptions, searched_with
from secondlook.score.vectors import VectorEncoder
from secondlook.serve.logs import LOGGER, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from secondlook.retrieve import Index
    from secondlook.types import Document, Query, Ranking

T = TypeVar("T")

_REPLACING = 0.1
"""Seconds to wait for a folder that is being replaced: for a moment there is none."""

_TRIES = 4
"""Of one search: the folder may be replaced again while the next index is opened."""

_RETRY = 5.0
"""Seconds after which a new index is tried again whose engine could not be reached: opening may
wait for the engine, and searches wait for it."""

_NO_OPTIONS = SearchOptions()


class ServedIndex:
    """An index, and how to open it anew. Threads may share it.

    The old one serves until the new one is open; whoever began with it ends with it, and the last
    one closes it. `open_` raises EngineProblem where the engine cannot be reached now, which a
    server outlives: it is tried again at the next search.
    """

    def __init__(
        self,
        open_: Callable[[], Index],
        version: Callable[[], object] = lambda: None,
        engine: str | None = None,
    ) -> None:
        self._open = open_
        self._version = version
        """Changes when there is something new to open; None while that cannot be told."""
        self._lock = threading.Lock()
        self._reopening = threading.Lock()
        self._current: Index | None = None
        self._tried: object = None
        """The version that was opened last, or could not be."""
        self._retry_at = math.inf
        """When that version is tried again, by `time.monotonic()`."""
        self._users: dict[int, int] = {}
        self._engine = engine
        self.problem: str | None = None
        """Why it was not open at first."""
        try:
            self.reopen()
        except EngineProblem as problem:
            self.problem = str(problem)

    @classmethod
    def of(cls, index: Index) -> ServedIndex:
        """An index that is open already, and stays."""
        return cls(lambda: index)

    @classmethod
    def at(cls, folder: Path) -> ServedIndex:
        """The index of a folder; raises IndexProblem where it is none."""

        def version() -> object:
            card, *others = (_stamp(path) for path in first_stage_files(folder))
            return None if card is None else (card, *others)

        def open_() -> Index:
            return open_first_stage(folder, None, VectorEncoder.load_for_queries)

        return cls(open_, version, read_card(folder).engine)

    @property
    def is_open(self) -> bool:
        """Whether there is one to search: the engine was reached once."""
        return self._current is not None

    @property
    def engine(self) -> str:
        """Which engine it is."""
        if self._current is not None:
            return self._current.card.engine
        assert self._engine is not None
        return self._engine

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """What a search may set beside filters; None where the engine takes neither."""
        return getattr(self._current, "parameters", None)

    @property
    def analyzer(self) -> str | None:
        """How words of queries and texts match; None while the engine cannot be reached."""
        return None if self._current is None else self._current.card.analyzer

    def look(
        self, query: Query, depth: int, options: SearchOptions = _NO_OPTIONS
    ) -> tuple[Ranking, list[Document], float]:
        """The best hits, their texts, and how many seconds it took to find them.

        Blocks, for opening too. Where the folder was replaced in the midst of it, the new index
        answers.
        """
        self._reopen_if_replaced(wait=self._current is None)
        for _ in range(_TRIES - 1):
            before = self._current
            try:
                return self._look(query, depth, options)
            except (IndexProblem, MissingDocument):
                time.sleep(_REPLACING)
                self._reopen_if_replaced(wait=True)
                if self._current is before and self._version() is not None:
                    raise  # nothing new came
        return self._look(query, depth, options)

    def use(self, work: Callable[[Index], T]) -> T:
        """What `work` makes of the index of now, which stays open until then."""
        with self._held() as index:
            return work(index)

    def reopen(self) -> None:
        """Open it anew; where that fails it raises, and the old one serves on."""
        with self._reopening:
            self._replace(self._version())

    def _replace(self, version: object) -> None:
        self._tried, self._retry_at = version, math.inf
        try:
            new = self._open()
        except EngineProblem:  # the engine may come back, without a change in the folder
            self._retry_at = time.monotonic() + _RETRY
            raise
        with self._lock:
            old, self._current = self._current, new
            unused = old is not None and old is not new and id(old) not in self._users
        if unused:
            _close(old)

    def _reopen_if_replaced(self, *, wait: bool) -> None:
        """Open what is new, unless another thread does; `wait` for that, or go on with the old."""
        if not self._replaced() or not self._reopening.acquire(blocking=wait):
            return
        try:
            if self._replaced():
                self._replace(self._version())
                note("index reopened")
        except SecondlookError as problem:
            if self._current is None:
                raise
            LOGGER.warning("index not reopened", extra={"facts": {"problem": str(problem)}})
        finally:
            self._reopening.release()

    def _replaced(self) -> bool:
        if self._current is None:
            return True
        version = self._version()
        again = time.monotonic() >= self._retry_at
        return version is not None and (version != self._tried or again)

    def _look(
        self, query: Query, depth: int, options: SearchOptions
    ) -> tuple[Ranking, list[Document], float]:
        with self._held() as index:
            began = time.monotonic()
            (ranking,) = searched_with(index, options).retrieve([query], depth)
            seconds = time.monotonic() - began
            texts = fetch_present(index, [hit.doc_id for hit in ranking.hits])
            ranking = still_there(ranking, texts)
            return ranking, [texts[hit.doc_id] for hit in ranking.hits], seconds

    @contextmanager
    def _held(self) -> Iterator[Index]:
        """The index of now; it stays open until its last user is done."""
        with self._lock:
            index = self._current
            assert index is not None
            self._users[id(index)] = self._users.get(id(index), 0) + 1
        try:
            yield index
        finally:
            with self._lock:
                self._users[id(index)] -= 1
                if last := not self._users[id(index)]:
                    del self._users[id(index)]
                unused = last and index is not self._current
            if unused:
                _close(index)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        at = path.stat()
    except OSError:
        return None
    return at.st_ino, at.st_mtime_ns


def _close(index: Index | None) -> None:
    close = getattr(index, "close", None)
    if close is not None:
        close()
