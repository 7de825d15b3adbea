"""A file in the making: what is finished survives a kill, and the target appears at the end."""

from __future__ import annotations

import json
import os
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from secondlook.data.durable import remove_halves, write_at_once
from secondlook.data.formats import read_run, write_run
from secondlook.data.lines import lines, write_lines
from secondlook.data.lock import Hold
from secondlook.data.trec import run_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from secondlook.types import Ranking

T = TypeVar("T")

SECONDS_BETWEEN_SAVES = 5.0


class PartialLines:
    """Takes lines batch by batch; a second start of the same job goes on where it stopped.

    `job` says what the file is made of (fingerprints, depth, …). What another job left beside the
    same target is thrown away. Raises OutputInUse where another process is at work on the target.
    """

    def __init__(self, target: Path, job: Mapping[str, Any]) -> None:
        self.target, self._job = target, json.loads(json.dumps(job))
        self._hold = Hold(
            target, f"what is finished of {target} is kept; the same command goes on from there"
        )
        self.path = target.with_name(f".{target.name}.partial")
        self._state = target.with_name(f".{target.name}.partial.json")
        if self._hold.first_to_clear(self._state):
            remove_halves(self._state)
        self.finished, self._bytes = self._found()
        """How many items are safe on the disk."""
        self._unsaved: list[str] = []
        self._unsaved_items, self._saved_at = 0, monotonic()
        with self.path.open("ab") as file:
            file.truncate(self._bytes)  # a batch that was cut off while it was written

    def _found(self) -> tuple[int, int]:
        if not (self._state.is_file() and self.path.is_file()):
            return 0, 0
        try:
            state = json.loads(self._state.read_text("utf-8"))
            finished, size = int(state["finished"]), int(state["bytes"])
            usable = state["job"] == self._job and 0 <= size <= self.path.stat().st_size
        except (ValueError, KeyError, TypeError):  # damaged: what it counted cannot be trusted
            return 0, 0
        return (finished, size) if usable else (0, 0)

    def append(self, rows: Iterable[str], items: int) -> None:
        """Append the lines of so many items; they count as finished when this returns."""
        text = "".join(row + "\n" for row in rows).encode()
        with self.path.open("r+b") as file:
            file.seek(self._bytes)
            file.truncate()  # what did not fit onto a full disk
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._bytes += len(text)
        self.finished += items
        state = {"job": self._job, "finished": self.finished, "bytes": self._bytes}
        write_at_once(self._state, json.dumps(state))

    def add(self, rows: Iterable[str], items: int) -> None:
        """Take the lines of so many items; they are on the disk a few seconds later at most.

        Where a batch takes longer than that, at once: waiting for the disk is dear only if it is
        done many times a second.
        """
        self._unsaved += rows
        self._unsaved_items += items
        if monotonic() - self._saved_at >= SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self) -> None:
        """Bring to the disk what was added."""
        if self._unsaved_items:
            self.append(self._unsaved, self._unsaved_items)
        self._unsaved, self._unsaved_items, self._saved_at = [], 0, monotonic()

    def fill(
        self,
        items: Iterable[T],
        rows: Callable[[list[T]], Iterable[str]],
        at_once: int,
        advance: Callable[[int], None],
    ) -> None:
        """Append the rows of all items that are not finished; `advance` hears how many are."""
        advance(self.finished)
        rest = islice(items, self.finished, None)
        try:
            while some := list(islice(rest, at_once)):
                self.add(rows(some), len(some))
                advance(len(some))
        finally:
            self.save()

    def rows(self) -> Iterator[str]:
        """The lines so far."""
        return (row for _, row in lines(self.path, may_be_empty=True))

    def finish(self, rows: Iterable[str]) -> None:
        """Write the target, compressed as its name says, and remove what was beside it."""
        write_lines(self.target, rows)
        self.remove()

    def remove(self) -> None:
        """Nothing is left beside the target."""
        self._state.unlink(missing_ok=True)
        self.path.unlink()
        self._hold.release()


class PartialRun:
    """The same for a run, ranking by ranking."""

    def __init__(self, target: Path, job: Mapping[str, Any], tag: str = "secondlook") -> None:
        self._lines, self._tag = PartialLines(target, job), tag

    @property
    def finished(self) -> int:
        """How many rankings are safe on the disk."""
        return self._lines.finished

    def add(self, rankings: Sequence[Ranking]) -> None:
        """Take one batch; it is on the disk a few seconds later at most."""
        self._lines.add(run_lines(rankings, self._tag), len(rankings))

    def finish(self) -> None:
        """Write the target, in the format of its name, and remove what was beside it."""
        self._lines.save()
        write_run(self._lines.target, read_run(self._lines.path, "trec"), tag=self._tag)
        self._lines.remove()
