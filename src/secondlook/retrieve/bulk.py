"""Many documents on the wire: cut into chunks, several on their way at once, bounded memory."""

from __future__ import annotations

import json
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from secondlook.errors import EngineProblem
from secondlook.retrieve.cluster import Busy
from secondlook.retrieve.cluster_vectors import VECTOR, as_json
from secondlook.retrieve.contents import contents
from secondlook.retrieve.lucene import CONTENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from secondlook.data.fingerprint import Fingerprint
    from secondlook.retrieve.cluster import Cluster
    from secondlook.retrieve.vector_files import StoredRows
    from secondlook.types import Document

_BATCH_WRITES = 2_000
_BATCH_BYTES = 4 << 20
_THREADS = 4
_WAITING = 2 * _THREADS  # chunks in memory: at most 32 MiB, unless one document is larger
SHOWN = "shown"
"""Title and text of a weighed document, kept without being indexed."""
QUERIES = "queries"
_ID_BYTES = 512  # OpenSearch's and Elasticsearch's limit


@dataclass(frozen=True, slots=True)
class Write:
    """One operation of a bulk request."""

    operation: Literal["create", "index", "delete"]
    doc_id: str
    source: bytes = b""

    @property
    def lines(self) -> bytes:
        """As the bulk API reads it."""
        action = f'{{"{self.operation}":{{"_id":{json.dumps(self.doc_id)}}}}}\n'.encode()
        return b"%b%b\n" % (action, self.source) if self.source else action


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive documents of a corpus."""

    writes: tuple[Write, ...]
    end: int
    """How many documents the corpus has up to and including this chunk."""
    digest: str
    """The corpus's fingerprint up to there."""


def write_of(operation: Literal["create", "index"], document: Document, **fields: Any) -> Write:  # noqa: ANN401 - JSON
    """The write that puts a document into the index."""
    size = len(document.id.encode())
    if not 0 < size <= _ID_BYTES:
        raise EngineProblem(
            f"document id {document.id[:40]!r} has {size} bytes, and the cluster takes 1 to "
            f"{_ID_BYTES}: give the documents other ids, or index them with `engine` bm25s"
        )
    source: dict[str, Any] = {"doc_id": document.id, **fields}
    shown = {"title": document.title, "text": document.text}
    if document.weights is not None:
        source |= {SHOWN: shown, CONTENTS: contents(document)}
    elif document.queries:
        source |= shown | {QUERIES: document.queries}
    else:
        source |= shown
    return Write(operation, document.id, json.dumps(source, ensure_ascii=False).encode())


def batches(writes: Iterable[Write]) -> Iterator[tuple[Write, ...]]:
    """As many writes as one request should carry."""
    batch: list[Write] = []
    size = 0
    for write in writes:
        batch.append(write)
        size += len(write.source)
        if len(batch) == _BATCH_WRITES or size >= _BATCH_BYTES:
            yield tuple(batch)
            batch, size = [], 0
    if batch:
        yield tuple(batch)


def cut(
    documents: Iterable[Document],
    start: int,
    fingerprint: Fingerprint,
    vectors: StoredRows | None = None,
) -> Iterator[Chunk]:
    """The rest of a corpus, from the document at `start` on; `fingerprint` knows those before.

    `vectors` has a row for each document of the whole corpus.
    """

    def creates() -> Iterator[Write]:
        for position, document in enumerate(documents, start):
            fingerprint.add(document)
            more: dict[str, Any] = {"position": position}
            if vectors is not None:
                more[VECTOR] = as_json(vectors.read(slice(position, position + 1))[0])
            yield write_of("create", document, **more)

    end = start
    for batch in batches(creates()):
        end += len(batch)
        yield Chunk(batch, end, fingerprint.digest())


def in_parallel(
    cluster: Cluster, put: Callable[[Chunk], None], chunks: Iterable[Chunk]
) -> Generator[Chunk, None, None]:
    """Each chunk once it is in the index, in the corpus's order."""
    waiting: deque[tuple[Chunk, Future[None]]] = deque()
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="bulk")
    try:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(put, chunk)))
            if len(waiting) == _WAITING:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except BaseException:
        cluster.give_up()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _first(waiting: deque[tuple[Chunk, Future[None]]]) -> Chunk:
    chunk, future = waiting.popleft()
    future.result()
    return chunk


def send(cluster: Cluster, alias: str, writes: Sequence[Write]) -> list[Write]:
    """Write until the cluster has taken everything; returns the creates of ids it already has.

    Taken means: on the disk of every copy of the shard that is in sync.
    """
    pending, conflicts = list(writes), list[Write]()

    def attempt() -> None:
        nonlocal pending
        answer = cluster.request(
            "POST",
            f"/{alias}/_bulk",
            b"".join([write.lines for write in pending]),
            needs=("errors",),
            require_alias="true",  # else a write to a deleted index makes one without our mapping
            filter_path="errors,items.*.status,items.*.error",
        )
        if not answer["errors"]:
            return
        again, busy = list[Write](), None
        for write, item in zip(pending, answer["items"], strict=True):
            (result,) = item.values()
            status = result["status"]
            if status < 300 or (status == 404 and "error" not in result):  # deleted already
                continue
            if status == 409:
                conflicts.append(write)
                continue
            problem = cluster.refusal(status, result["error"], f"document {write.doc_id!r}")
            if not isinstance(problem, Busy):
                raise problem
            again.append(write)
            busy = problem
        pending = again
        if busy:
            raise busy

    cluster.patiently(attempt)
    return conflicts
