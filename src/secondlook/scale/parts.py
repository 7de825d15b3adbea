"""Work in parts whose results appear whole or not at all: a re-run does only what is missing."""

from __future__ import annotations

import json
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from secondlook.data.durable import write_at_once
from secondlook.data.lock import Hold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


class Parts:
    """The parts of one job, in a folder beside its target that all workers can reach.

    `job` says what the work is made of; what another job left in the folder is thrown away.
    `first` is the number of the first part that is asked about: those before it are done with.
    Raises OutputInUse where another process is at work on the target.
    """

    def __init__(self, target: Path, job: Mapping[str, Any], first: int = 0) -> None:
        self._first = first
        self._hold = Hold(
            target, f"the parts of {target} that are done stay; the same command does the others"
        )
        self.folder = (target.parent / f".{target.name}.parts").absolute()
        state = self.folder / "job.json"
        if not _is_of(state, json.loads(json.dumps(job))):
            rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            write_at_once(state, json.dumps(job))

    def give(self, work: Iterable[str]) -> int:
        """Lay down what each part is to do, in order; says how many there are."""
        count = self._first
        for count, text in enumerate(work, self._first + 1):
            path = self._work(count - 1)
            if not path.is_file() and not result_of(path).is_file():
                write_at_once(path, text)
        return count

    def missing(self, count: int) -> list[Path]:
        """The work that has no result yet."""
        work = map(self._work, range(self._first, count))
        return [path for path in work if not result_of(path).is_file()]

    def results(self, count: int) -> Iterator[Path]:
        """All results, in the order of the work."""
        return (result_of(self._work(number)) for number in range(self._first, count))

    def remove(self) -> None:
        """The target is written: nothing of this is needed any more."""
        rmtree(self.folder)
        self._hold.release()

    def _work(self, number: int) -> Path:
        return self.folder / f"{number:06}.work"


def _is_of(state: Path, job: Mapping[str, Any]) -> bool:
    try:
        return state.is_file() and json.loads(state.read_text("utf-8")) == job
    except ValueError:  # damaged: nobody knows whose the parts are
        return False


def result_of(work: Path) -> Path:
    """Where the result of a part belongs."""
    return work.with_suffix(".done")
