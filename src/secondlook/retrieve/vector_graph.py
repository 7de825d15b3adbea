"""Approximate nearest neighbours: HNSW graphs over stored rows, one for each part of the corpus.

A part has a fixed number of rows, so that the memory of building does not grow with the corpus, a
finished graph survives a kill, and the same rows always give the same bytes.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import IndexProblem, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from secondlook.retrieve.vector_files import StoredRows, VectorCard, VectorPrecision

EXACT_ROWS = 100_000
"""Up to so many rows, comparing all of them takes some ten milliseconds, and misses none."""
PART_ROWS = 262_144
_BLOCK = 8_192
_LEARNED_FROM = 10_000
_CONNECTIVITY, _EXPANSION = 16, 128
LINK_BYTES = 144
"""Of each vector in a graph, 16 neighbours on a level: 32 of 4 bytes on the lowest, 4 on those
above on average, and 12 that say where they are."""
_MOST_BYTES = 2**30
"""Of graphs that are built at once."""
_LEAST_FOUND = 128
"""Of each graph: the search keeps at least so many candidates, which decides what it misses."""


def build_graphs(
    rows: StoredRows,
    folder: Path,
    precision: VectorPrecision,
    dimension: int,
    advance: Callable[[int], None],
    threads: int = 1,
) -> int:
    """Build the graphs that are not there yet; how many there are. `advance` counts rows.

    As many are built at once as there are threads, each by one of them, and as fit into a gigabyte.
    """
    faiss, starts = _library(), range(0, len(rows), PART_ROWS)
    graph_bytes = PART_ROWS * (4 * dimension + LINK_BYTES)  # in fp32; others take less
    stopped, alone = Event(), Lock()

    def build(number: int) -> None:
        own = range(starts[number], min(starts[number] + PART_ROWS, len(rows)))
        path = graph_path(folder, number)
        if _is_finished(faiss, path, len(own)):
            with alone:
                advance(len(own))
            return
        graph = _empty(faiss, precision, dimension)
        if not graph.is_trained:  # the ranges of int8, from rows spread over the part
            step = max(1, len(own) // _LEARNED_FROM)
            graph.train(rows.read(np.arange(own.start, own.stop, step)))
        for block in range(own.start, own.stop, _BLOCK):
            if stopped.is_set():
                return
            part = slice(block, min(block + _BLOCK, own.stop))
            with _on_one_thread(faiss):
                graph.add(rows.read(part))
            with alone:
                advance(part.stop - part.start)
        half = path.with_suffix(".half")
        faiss.write_index(graph, str(half))
        half.replace(path)

    with ThreadPoolExecutor(max(1, min(threads, _MOST_BYTES // graph_bytes))) as pool:
        try:
            for built in [pool.submit(build, number) for number in range(len(starts))]:
                built.result()
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    return len(starts)


class Graphs:
    """The graphs of a folder, memory-mapped."""

    def __init__(self, folder: Path, card: VectorCard) -> None:
        self._faiss = _library()
        self._graphs: list[Any] = []
        for number in range(card.graphs):
            path = graph_path(folder, number)
            try:
                self._graphs.append(_opened(self._faiss, path))
            except RuntimeError as error:  # whatever is wrong with the file
                raise _damaged(folder, f"{path} is missing or damaged") from error
        if sum(graph.ntotal for graph in self._graphs) != card.rows:
            raise _damaged(folder, f"the graphs in {folder} are of other vectors than its rows")

    def search(self, vectors: NDArray[np.float32], count: int) -> list[NDArray[np.int64]]:
        """For each vector, rows that are likely among its `count` nearest; in no order."""
        wanted = found_for(count)
        options = self._faiss.SearchParametersHNSW(efSearch=wanted)
        found, start = [], 0
        for graph in self._graphs:
            _, rows = graph.search(vectors, min(wanted, graph.ntotal), params=options)
            found.append(np.where(rows >= 0, rows + start, -1))
            start += graph.ntotal
        together = np.concatenate(found, axis=1)  # [vectors, candidates]
        return [own[own >= 0] for own in together]


def found_for(count: int) -> int:
    """How many a graph finds where so many are asked for: its time grows with them."""
    return max(2 * count, _LEAST_FOUND)


def refuse_without_library(documents: int) -> None:
    """Raises MissingExtra, before hours of encoding, where graphs will be needed but not built."""
    if documents > EXACT_ROWS:
        _library()


def _is_finished(faiss: Any, path: Path, rows: int) -> bool:  # noqa: ANN401
    """Whether the graph of a part is there; one of fewer rows is of an index that has grown."""
    try:
        return path.is_file() and bool(_opened(faiss, path).ntotal == rows)
    except RuntimeError:  # damaged: it is built again
        return False


def _opened(faiss: Any, path: Path) -> Any:  # noqa: ANN401
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)


def _damaged(folder: Path, reason: str) -> IndexProblem:
    return IndexProblem(
        f"{reason}; make the vectors anew: secondlook index CORPUS {folder.parent} --vectors RANKER"
    )


def _empty(faiss: Any, precision: VectorPrecision, dimension: int) -> Any:  # noqa: ANN401
    metric, kinds = faiss.METRIC_INNER_PRODUCT, faiss.ScalarQuantizer
    if precision == "fp32":
        graph = faiss.IndexHNSWFlat(dimension, _CONNECTIVITY, metric)
    else:  # candidates are compared by the rows themselves
        kind = kinds.QT_fp16 if precision == "fp16" else kinds.QT_8bit
        graph = faiss.IndexHNSWSQ(dimension, kind, _CONNECTIVITY, metric)
    graph.hnsw.efConstruction = _EXPANSION
    return graph


@contextmanager
def _on_one_thread(faiss: Any) -> Iterator[None]:  # noqa: ANN401
    """So that the same rows make the same graph; OpenMP counts threads for each caller's thread."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def graph_path(folder: Path, number: int) -> Path:
    """The file of the graph of one part."""
    return folder / f"graph-{number:04}.faiss"


def _library() -> Any:  # noqa: ANN401 - untyped, and imported late
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # SWIG's, of no use to a caller
            import faiss
    except ImportError as error:
        raise MissingExtra("vectors", f"searching more than {EXACT_ROWS:,} vectors") from error
    return faiss
