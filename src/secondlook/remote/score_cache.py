"""Scores of remote re-rankers on this machine's disk: what was paid for once is not asked again.

A score is found by a digest of the service, the model, the query and the text; no text is kept.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING

from secondlook.data.cache import cache_folder
from secondlook.errors import Unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

MOST_SCORES = 10_000_000
"""About a gigabyte; beyond them the oldest tenth is dropped."""
_AT_ONCE = 500  # parameters of one statement
_TABLE = """create table if not exists scores (
  number integer primary key autoincrement, digest blob not null unique, score real not null)"""


def cache_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where scores are kept: in the user's cache folder."""
    return cache_folder(environ) / "remote-scores.sqlite"


def digest(*parts: str) -> bytes:
    """One that no other parts have; each part's length is part of it."""
    whole = blake2b(digest_size=16)
    for part in parts:
        text = part.encode("utf-8", "surrogatepass")
        whole.update(len(text).to_bytes(8, "big") + text)
    return whole.digest()


class ScoreCache:
    """Scores by digest, in one SQLite file. Threads and processes may share it."""

    def __init__(self, path: Path, most: int = MOST_SCORES) -> None:
        self.path, self._most = path, most
        self._lock = threading.Lock()
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=30, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = normal")
            self._connection.execute(_TABLE)
        weakref.finalize(self, self._connection.close)

    def get(self, digests: Sequence[bytes]) -> dict[bytes, float]:
        """The scores that are there."""
        found: dict[bytes, float] = {}
        with self._told(), self._lock:
            for start in range(0, len(digests), _AT_ONCE):
                some = digests[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                asked = f"select digest, score from scores where digest in ({marks})"  # noqa: S608
                found.update(self._connection.execute(asked, some).fetchall())
        return found

    def put(self, scores: Iterable[tuple[bytes, float]]) -> None:
        """Keep scores, all of them or none; a score that is there stays as it is."""
        with self._told(), self._lock:
            self._connection.execute("begin immediate")
            try:
                self._connection.executemany(
                    "insert or ignore into scores (digest, score) values (?, ?)", scores
                )
                self._drop_oldest()
                self._connection.execute("commit")
            except BaseException:
                if self._connection.in_transaction:  # on a full disk SQLite has rolled back itself
                    self._connection.execute("rollback")
                raise

    def _drop_oldest(self) -> None:
        first, last = self._connection.execute(
            "select min(number), max(number) from scores"
        ).fetchone()
        if last is not None and last - first >= self._most:
            oldest = last - self._most + self._most // 10
            self._connection.execute("delete from scores where number <= ?", (oldest,))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise Unwritable(
                f"scores of remote re-rankers cannot be kept in {self.path}: {error}; name another "
                "folder in SECONDLOOK_CACHE, or add cache=off to the address"
            ) from error
