"""Texts by id from one SQLite file: built in one pass, then only read."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from contextlib import closing, contextmanager
from glob import escape
from typing import TYPE_CHECKING

from secondlook.data.durable import sync
from secondlook.data.fingerprint import Fingerprint
from secondlook.errors import DuplicateId, IndexProblem, MissingDocument
from secondlook.types import Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

APPLICATION = int.from_bytes(b"2ndL", "big")  # SQLite's application_id: whose file this is
VERSION = 1
MAPPED_BYTES = 2**31  # as much as SQLite maps at most; what lies beyond is read in the usual way
BUILD_CACHE_KIB = 64 * 1024
_HEADER_BYTES = 100
_ONE_WRITE = 1  # SQLite counts the transactions of a file in its header; a store is made in one
_MAKE_ANEW = "make it anew from the corpus with: secondlook index CORPUS INDEX --replace"


class CorpusStore:
    """A corpus on disk that never changes once it is built.

    Any number of threads and processes may read one store at the same time: each thread of each
    process opens its own connection when it first reads, so that a store opened before a fork
    serves the child as well.
    """

    def __init__(self, path: Path, fingerprint: str, documents: int) -> None:
        self.path = path
        self.fingerprint = fingerprint
        """Of the documents in their order; see `Fingerprint`."""
        self._documents = documents
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}
        self._closed = False

    @classmethod
    def build(cls, path: Path, documents: Iterable[Document]) -> CorpusStore:
        """Write all documents, in one streaming pass, and open what was written.

        The file appears at `path` complete or not at all, in place of any older one. What a
        killed build left beside it is cleared away by the next.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_abandoned(path)
        half = path.with_name(f".{path.name}.{secrets.token_hex(8)}.building")
        try:
            _write(half, documents)
            half.replace(path)
        except sqlite3.Error as error:
            raise IndexProblem(f"{path} could not be written: {error}") from error
        finally:
            half.unlink(missing_ok=True)
        sync(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> CorpusStore:
        """The store at `path`; raises IndexProblem for anything else."""
        if not path.is_file():
            raise IndexProblem(f"no corpus store at {path}; make one with: secondlook index")
        with _legible(path):
            connection, card = _connect(path)
            connection.close()
        return cls(path, *card)

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents in the order asked for; raises MissingDocument for unknown ids."""
        found, missing = [], []
        with _legible(self.path):
            connection = self._connection()
            for doc_id in doc_ids:
                row = _look_up(connection, doc_id)
                if row is None:
                    missing.append(doc_id)
                else:
                    found.append(Document(doc_id, row[1], row[0]))
        if missing:
            raise MissingDocument(missing, f"the corpus store {self.path}")
        return found

    def at(self, places: Sequence[int]) -> list[Document]:
        """The documents that were stored at these places, counted from 0."""
        if any(not 0 <= place < self._documents for place in places):
            raise IndexError(f"{self.path} holds {self._documents} documents")
        ask = "SELECT id, text, title FROM documents WHERE position = ?"
        with _legible(self.path):
            connection = self._connection()
            return [Document(*connection.execute(ask, (place + 1,)).fetchone()) for place in places]

    def __len__(self) -> int:
        return self._documents

    def __iter__(self) -> Iterator[Document]:
        """Every document, in the order it was stored, read as it is asked for."""
        with _legible(self.path):
            for doc_id, title, text in self._connection().execute(
                "SELECT id, title, text FROM documents ORDER BY position"
            ):
                yield Document(doc_id, text, title)

    def verify(self) -> None:
        """Read every text; raises IndexProblem unless they are exactly those that were stored.

        Opening a store only looks at its size and at SQLite's count of changes, which a damaged
        disk or another editor does not touch.
        """
        with _legible(self.path):
            wanted = _fingerprint_of_texts(self._connection()) or self.fingerprint
        if Fingerprint.of(self).digest() != wanted:
            raise IndexProblem(
                f"the texts in {self.path} are not those that were indexed; {_MAKE_ANEW}"
            )

    def close(self) -> None:
        """Let go of the file in every thread of this process."""
        self._closed = True
        for (process, _), connection in list(self._connections.items()):
            if process == os.getpid():
                connection.close()
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise ValueError(f"the corpus store {self.path} was closed")
        reader = os.getpid(), threading.get_ident()
        if reader not in self._connections:
            self._connections[reader] = self._connect_again()
        return self._connections[reader]

    def _connect_again(self) -> sqlite3.Connection:
        """One more connection to the same corpus: the file may have been replaced since."""
        connection, card = _connect(self.path)
        if card != (self.fingerprint, self._documents):
            connection.close()
            raise IndexProblem(
                f"{self.path} holds another corpus than when it was opened; open it again"
            )
        return connection


def _connect(path: Path) -> tuple[sqlite3.Connection, tuple[str, int]]:
    """A connection for reading, with the store's fingerprint and number of documents."""
    # immutable: no locks and no side files, so that a read-only disk or many processes will do.
    # check_same_thread is off only for `close`, which ends the connections of other threads.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
    )
    try:
        connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
        card = _card(connection, path)
        _refuse_changed(path)
    except BaseException:
        connection.close()
        raise
    return connection, card


def _refuse_changed(path: Path) -> None:
    """A cheap look at the header: whether the file is whole, and nobody has written to it since."""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    page_bytes, changes, pages = (
        int.from_bytes(header[start:end], "big") for start, end in ((16, 18), (24, 28), (28, 32))
    )
    size, whole = path.stat().st_size, pages * (65_536 if page_bytes == 1 else page_bytes)
    if size != whole:
        raise IndexProblem(f"{path} is damaged: {size:,} of {whole:,} bytes; {_MAKE_ANEW}")
    if changes != _ONE_WRITE:
        raise IndexProblem(
            f"{path} was changed by another program after it was made, so that its texts may not "
            f"be those that were indexed; {_MAKE_ANEW}"
        )


def _card(connection: sqlite3.Connection, path: Path) -> tuple[str, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise IndexProblem(
            f"{path} is no corpus store; make one from the corpus with: secondlook index"
        )
    if version != VERSION:
        raise IndexProblem(
            f"{path} is a corpus store of version {version}, and this secondlook reads "
            f"version {VERSION}; make it anew with: secondlook index"
        )
    fingerprint, documents = connection.execute(
        "SELECT fingerprint, documents FROM card"
    ).fetchone()
    return fingerprint, documents


def _fingerprint_of_texts(connection: sqlite3.Connection) -> str:
    """Empty in a store of an earlier version: there it is the corpus's own.

    They differ where documents had weights or predicted queries, which no store keeps.
    """
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    if ("texts",) not in tables:
        return ""
    (fingerprint,) = connection.execute("SELECT fingerprint FROM texts").fetchone()
    return str(fingerprint)


def _look_up(connection: sqlite3.Connection, doc_id: str) -> tuple[str, str] | None:
    try:
        row: tuple[str, str] | None = connection.execute(
            "SELECT title, text FROM documents WHERE id = ?", (doc_id,)
        ).fetchone()
    except UnicodeEncodeError:  # half a surrogate pair: no stored id holds one
        return None
    return row


def _write(path: Path, documents: Iterable[Document]) -> None:
    fingerprint, texts = Fingerprint(), Fingerprint()

    def rows() -> Iterator[tuple[str, str, str]]:
        for document in documents:
            fingerprint.add(document)
            texts.add(Document(document.id, document.text, document.title))
            yield document.id, document.title, document.text

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")  # a failed build is thrown away whole
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # held to the end: see _abandoned
        connection.execute(f"PRAGMA cache_size = -{BUILD_CACHE_KIB}")  # sorting the ids uses it
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute(
            "CREATE TABLE documents (position INTEGER PRIMARY KEY,"
            " id TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL)"
        )
        connection.executemany("INSERT INTO documents (id, title, text) VALUES (?, ?, ?)", rows())
        _index_ids(connection)
        connection.execute(
            "CREATE TABLE card (fingerprint TEXT NOT NULL, documents INTEGER NOT NULL)"
        )
        connection.execute(
            "INSERT INTO card SELECT ?, ifnull(max(position), 0) FROM documents",
            (fingerprint.digest(),),
        )
        connection.execute("CREATE TABLE texts (fingerprint TEXT NOT NULL)")
        connection.execute("INSERT INTO texts VALUES (?)", (texts.digest(),))
        connection.execute("COMMIT")  # syncs the file: all of it is on the disk before the rename


def _index_ids(connection: sqlite3.Connection) -> None:
    # After the load, in one sort: ids in random order would make each insert a random write.
    try:
        connection.execute("CREATE UNIQUE INDEX by_id ON documents (id)")
    except sqlite3.IntegrityError as error:
        doc_id, places = connection.execute(
            "SELECT id, group_concat(position) FROM documents GROUP BY id HAVING count(*) > 1"
            " ORDER BY min(position) LIMIT 1"
        ).fetchone()
        first, second, *_ = sorted(map(int, places.split(",")))
        raise DuplicateId(doc_id, first, second) from error


def _clear_abandoned(path: Path) -> None:
    for half in path.parent.glob(f".{escape(path.name)}.*.building"):
        if _abandoned(half):
            half.unlink(missing_ok=True)


def _abandoned(half: Path) -> bool:
    """Whether no process is still at work on it: a build holds SQLite's exclusive lock."""
    try:
        with closing(sqlite3.connect(half, timeout=0, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:  # or it was cut off too early to be a database
        return error.sqlite_errorcode != sqlite3.SQLITE_BUSY
    return True


@contextmanager
def _legible(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise IndexProblem(
            f"{path} is damaged or no corpus store ({error}); "
            "make it anew from the corpus with: secondlook index"
        ) from error
