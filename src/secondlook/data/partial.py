"""A run in the making: what is finished survives a kill, and the target appears at the end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from secondlook.data.durable import write_at_once
from secondlook.data.formats import read_run, write_run
from secondlook.data.trec import run_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from secondlook.types import Ranking


class PartialRun:
    """Takes rankings batch by batch; a second start of the same job goes on where it stopped.

    `job` says what the run is made of (fingerprints, depth, …). What another job left beside the
    same target is thrown away.
    """

    def __init__(self, target: Path, job: Mapping[str, Any], tag: str = "secondlook") -> None:
        self._target, self._job, self._tag = target, dict(job), tag
        self._lines = target.with_name(f".{target.name}.partial")
        self._state = target.with_name(f".{target.name}.partial.json")
        self.finished, self._bytes = self._found()
        """How many rankings are safe on the disk."""
        with self._lines.open("ab") as lines:
            lines.truncate(self._bytes)  # a batch that was cut off while it was written

    def _found(self) -> tuple[int, int]:
        if not (self._state.is_file() and self._lines.is_file()):
            return 0, 0
        state = json.loads(self._state.read_text("utf-8"))
        return (state["finished"], state["bytes"]) if state["job"] == self._job else (0, 0)

    def add(self, rankings: Sequence[Ranking]) -> None:
        """Append one batch; it counts as finished when this returns."""
        text = "".join(line + "\n" for line in run_lines(rankings, self._tag)).encode()
        with self._lines.open("ab") as lines:
            lines.write(text)
            lines.flush()
            os.fsync(lines.fileno())
        self._bytes += len(text)
        self.finished += len(rankings)
        state = {"job": self._job, "finished": self.finished, "bytes": self._bytes}
        write_at_once(self._state, json.dumps(state))

    def finish(self) -> None:
        """Write the target, in the format of its name, and remove what was beside it."""
        write_run(self._target, read_run(self._lines, "trec"), tag=self._tag)
        self._state.unlink(missing_ok=True)
        self._lines.unlink()
