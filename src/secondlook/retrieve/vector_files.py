"""Document vectors on disk: in fp32, fp16 or int8, memory-mapped; a kill costs seconds of work.

`INDEX/vectors/` holds rows.bin, a row for each document or for each window of one; `encoder/`, the
ranker that made them, to encode queries with; and vectors.json, which says what they are and is
written last.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from math import prod
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from secondlook.data.durable import sync, write_at_once
from secondlook.data.lock import Hold
from secondlook.encode.settings import WindowSettings  # noqa: TC001 - pydantic reads it
from secondlook.errors import IndexProblem, UnknownName
from secondlook.recipe import Settings
from secondlook.retrieve.digests import write_digests
from secondlook.retrieve.id_list import ID_ENDS, ID_ORDER, IDS, IdList, IdPositions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FOLDER = "vectors"
_HALF = f".{FOLDER}.half"
UNFINISHED = _HALF, f".{FOLDER}.parts"
"""What an interrupted job leaves in an index folder: its own vectors, and those of Ray workers."""
ENCODER = "encoder"
VECTOR_CARD = "vectors.json"
_ROWS, _SCALES, _COUNTS = "rows.bin", "scales.bin", "counts.bin"
_CENTRE = "centre.npy"
"""What is subtracted from rows before they are rounded to int8: much of what all have in common."""
_ROW_ENDS = "row_ends.npy"
_STATE = "progress.json"
_SECONDS_BETWEEN_SAVES = 5.0

VectorPrecision = Literal["fp32", "fp16", "int8"]
_TYPES: dict[VectorPrecision, type[np.generic]] = {
    "fp32": np.float32,
    "fp16": np.float16,
    "int8": np.int8,
}


class VectorCard(Settings):
    """What the vectors of an index say of themselves."""

    version: Literal[1] = 1
    ranker: str
    """The name of the ranker that made them."""
    fingerprint: str
    """Of its weights and of how it reads documents: other rankers' vectors are refused."""
    source: str
    """Of the model that was named, which may be a bare bi-encoder."""
    dimension: int = Field(ge=1)
    precision: VectorPrecision = "fp32"
    documents: int = Field(ge=1)
    rows: int = Field(ge=1)
    """As many as documents, or more where these are read in windows."""
    corpus: str
    """The fingerprint of the documents."""
    windows: WindowSettings | None = None
    """How the similarities of a document's windows become one."""
    graphs: int = Field(default=0, ge=0)
    """HNSW graphs over the rows; none where every row is compared."""
    stored: Literal["folder", "cluster"] = "folder"
    state_tokens: int = Field(default=0, ge=0)
    """Tokens of documents whose states are stored beside the rows (state_files.py); mostly none."""


def read_vector_card(folder: Path) -> VectorCard:
    """The card of the vectors in a folder; raises IndexProblem."""
    path = folder / VECTOR_CARD
    try:
        return VectorCard.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError, UnknownName) as error:
        raise damaged_vectors(folder, error) from error


def write_vector_card(folder: Path, card: VectorCard) -> None:
    """Last, and at once: a folder without it was never finished."""
    write_at_once(folder / VECTOR_CARD, card.model_dump_json(indent=2) + "\n")


def has_vectors(index: Path) -> bool:
    """Whether an index folder holds finished vectors."""
    return (index / FOLDER / VECTOR_CARD).is_file()


def is_of_vectors(path: Path) -> bool:
    """Whether this entry of an index folder is of its vectors, finished or in the making."""
    return path.name == FOLDER or path.name.startswith(f".{FOLDER}.")


def remove_vectors(index: Path) -> None:
    """Remove the finished vectors of an index, if it has any: all at once, for who opens it."""
    shutil.rmtree(_set_aside(index / FOLDER), ignore_errors=True)


def _set_aside(vectors: Path) -> Path:
    """Move vectors out of their place; gives where they are now."""
    old = vectors.with_name(f".{FOLDER}.old")
    shutil.rmtree(old, ignore_errors=True)
    if vectors.exists():
        vectors.rename(old)
    return old


class StoredRows:
    """The rows of a finished folder, read as float32 when they are asked for."""

    def __init__(self, folder: Path, precision: VectorPrecision, rows: int, dimension: int) -> None:
        self._rows = _mapped(folder / _ROWS, _TYPES[precision], (rows, dimension))
        self._scales: NDArray[np.float32] | None = None
        self._centre = np.zeros(dimension, np.float32)
        if precision == "int8":
            self._scales = _mapped(folder / _SCALES, np.float32, (rows,))
            self._centre = np.load(folder / _CENTRE)

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, chosen: slice | NDArray[np.int64]) -> NDArray[np.float32]:
        """These rows: [rows, dimension]."""
        rows = np.asarray(self._rows[chosen], np.float32)
        if self._scales is None:
            return rows
        return rows * self._scales[chosen][:, None] + self._centre

    def similarities(self, chosen: slice, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """The dot product of these rows with each vector: [rows, vectors]."""
        products = np.asarray(self._rows[chosen], np.float32) @ vectors.T
        if self._scales is None:
            return products
        return products * self._scales[chosen][:, None] + self._centre @ vectors.T


def _mapped(path: Path, kind: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of exactly this file; raises ValueError where it is shorter or longer."""
    size, wanted = path.stat().st_size, np.dtype(kind).itemsize * prod(shape)
    if size != wanted:
        raise ValueError(f"{path.name} has {size:,} bytes instead of {wanted:,}")
    return np.memmap(path, kind, "r", shape=shape)


class VectorFiles:
    """A finished folder of vectors: its rows, and which document each is of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.card = card = read_vector_card(folder)
        try:
            self.ids = IdList(folder)
            self.positions = IdPositions(folder, self.ids)
            self.rows = StoredRows(folder, card.precision, card.rows, card.dimension)
            self._ends = None
            if card.rows != card.documents:
                self._ends = np.load(folder / _ROW_ENDS, mmap_mode="r")  # [documents]
            fits = len(self.ids) == card.documents and (
                self._ends is None
                or (len(self._ends), self._ends[-1]) == (len(self.ids), card.rows)
            )
        except (OSError, ValueError, EOFError) as error:
            raise damaged_vectors(folder, error) from error
        if not fits:
            raise damaged_vectors(folder, "its parts do not belong together")

    def documents_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The position of the document that each row is of."""
        return rows if self._ends is None else np.searchsorted(self._ends, rows, side="right")

    def rows_of(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All rows of these documents, one after the other, and how many each has."""
        if self._ends is None:
            return documents, np.ones(len(documents), np.int64)
        ends = self._ends[documents]
        starts = np.where(documents > 0, self._ends[documents - 1], 0)
        counts = ends - starts
        before = np.cumsum(counts) - counts
        rows = np.arange(counts.sum()) - np.repeat(before, counts) + np.repeat(starts, counts)
        return rows, counts

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """How many rows each document has; None where each has one."""
        return None if self._ends is None else np.diff(self._ends, prepend=0)


@dataclass(frozen=True, slots=True)
class _Saved:
    """How much of a job is finished."""

    documents: int = 0
    rows: int = 0
    id_bytes: int = 0


class VectorWriter:
    """Vectors in the making: batch by batch, finished ones kept through a kill.

    `job` says what they are made of. What another job left is thrown away. Raises OutputInUse where
    another process makes vectors for the same index.
    """

    def __init__(
        self, index: Path, job: Mapping[str, Any], dimension: int, precision: VectorPrecision
    ) -> None:
        self.target = index / FOLDER
        self.folder = index / _HALF
        self._hold = Hold(
            self.target, "the vectors made so far are kept; the same command goes on from there"
        )
        self._job = json.loads(json.dumps(job))
        self._dimension, self._precision = dimension, precision
        self._centre: NDArray[np.float32] | None = None
        saved = self._found()
        if saved is None:
            saved = _Saved()
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        self.documents, self.rows, self._id_bytes = saved.documents, saved.rows, saved.id_bytes
        self._files = {name: self._opened(name, size) for name, size in self._sizes(saved).items()}
        self._saved_at = monotonic()

    def _found(self) -> _Saved | None:
        """What the same job saved, where its files hold as much; None otherwise."""
        try:
            state = json.loads((self.folder / _STATE).read_text("utf-8"))
            saved = _Saved(int(state["documents"]), int(state["rows"]), int(state["id_bytes"]))
            same = state["job"] == self._job
        except (OSError, ValueError, KeyError, TypeError):
            return None
        whole = all(
            (self.folder / name).is_file() and (self.folder / name).stat().st_size >= size
            for name, size in self._sizes(saved).items()
        )
        return saved if same and whole else None

    def _sizes(self, saved: _Saved) -> dict[str, int]:
        """What each file holds of what is finished, in bytes."""
        width = np.dtype(_TYPES[self._precision]).itemsize * self._dimension
        sizes = {_ROWS: saved.rows * width, _COUNTS: 4 * saved.documents}
        sizes |= {IDS: saved.id_bytes, "id_lengths.bin": 4 * saved.documents}
        return sizes | ({_SCALES: 4 * saved.rows} if self._precision == "int8" else {})

    def _opened(self, name: str, size: int) -> Any:  # noqa: ANN401 - a binary file
        file = (self.folder / name).open("ab")
        file.truncate(size)
        return file

    def add(
        self, doc_ids: Sequence[str], counts: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> None:
        """Append the vectors of some documents, of which each has so many; within seconds safe."""
        if self._precision == "int8":
            vectors = vectors - self._centre_of(vectors)
        rows, scales = packed(vectors, self._precision)
        encoded = [doc_id.encode() for doc_id in doc_ids]
        self._files[_ROWS].write(rows.tobytes())
        if scales is not None:
            self._files[_SCALES].write(scales.tobytes())
        self._files[_COUNTS].write(counts.astype(np.uint32).tobytes())
        self._files[IDS].write(b"".join(encoded))
        lengths = np.array([len(one) for one in encoded], np.uint32)
        self._files["id_lengths.bin"].write(lengths.tobytes())
        self.documents += len(doc_ids)
        self.rows += len(vectors)
        self._id_bytes += int(lengths.sum())
        if monotonic() - self._saved_at >= _SECONDS_BETWEEN_SAVES:
            self.save()

    def _centre_of(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """The mean of the first batch, whatever comes later."""
        path = self.folder / _CENTRE
        if not self.documents:
            np.save(path, vectors.mean(axis=0))
            sync(path)
            self._centre = None
        if self._centre is None:
            self._centre = np.load(path)
        return self._centre

    def doc_ids(self) -> list[str]:
        """Of the documents that were added, those before an interruption included."""
        for file in self._files.values():
            file.flush()
        lengths = np.fromfile(self.folder / "id_lengths.bin", np.uint32).tolist()
        written, ends = (self.folder / IDS).read_bytes(), np.cumsum(lengths, dtype=np.int64)
        return [
            written[end - length : end].decode()
            for end, length in zip(ends.tolist(), lengths, strict=True)
        ]

    def save(self) -> None:
        """Bring to the disk what was added."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        state = {"job": self._job, "documents": self.documents, "rows": self.rows}
        write_at_once(self.folder / _STATE, json.dumps(state | {"id_bytes": self._id_bytes}))
        self._saved_at = monotonic()

    def close(self) -> None:
        """Stop here; the same job goes on from here later."""
        self._close()
        self._hold.release()

    def _close(self) -> None:
        self.save()
        for file in self._files.values():
            file.close()

    def complete(self) -> StoredRows:
        """All documents were added: write what is made of them together; gives the rows.

        Raises IndexProblem where there was none.
        """
        if not self.documents:
            self.close()
            raise IndexProblem(
                f"there are no documents to make vectors of for {self.target.parent}: fill the "
                "index first"
            )
        self._close()
        lengths = np.fromfile(self.folder / "id_lengths.bin", np.uint32)
        np.save(self.folder / ID_ENDS, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
        IdPositions.write(self.folder, IdList(self.folder))
        if self.rows != self.documents:
            counts = np.fromfile(self.folder / _COUNTS, np.uint32)
            np.save(self.folder / _ROW_ENDS, np.cumsum(counts, dtype=np.int64))
        return StoredRows(self.folder, self._precision, self.rows, self._dimension)

    def finish(self, card: VectorCard) -> None:
        """Put the whole in place of older vectors.

        What the job would go on from is removed last: a kill on the way costs no vector.
        """
        done = [_STATE, _COUNTS, "id_lengths.bin"]
        if card.stored == "cluster":
            done += [_ROWS, IDS, ID_ENDS, ID_ORDER]
        write_digests(self.folder, leave_out=[*done, VECTOR_CARD])
        write_vector_card(self.folder, card)
        sync(self.folder)
        old = _set_aside(self.target)
        self.folder.rename(self.target)
        for name in done:
            (self.target / name).unlink(missing_ok=True)
        shutil.rmtree(old, ignore_errors=True)
        self._hold.release()


def packed(
    vectors: NDArray[np.float32], precision: VectorPrecision
) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """The rows as they are stored, and for int8 what each row is multiplied by to read it."""
    if precision != "int8":
        return vectors.astype(_TYPES[precision]), None
    scales = np.abs(vectors).max(axis=1).astype(np.float32) / np.float32(127)
    scales = np.where(scales > 0, scales, np.float32(1))
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


def damaged_vectors(folder: Path, reason: object) -> IndexProblem:
    """What is wrong with a folder of vectors, and how to make it anew."""
    return IndexProblem(
        f"the vectors in {folder} are damaged ({reason}); remove that folder and make them anew: "
        f"secondlook index CORPUS {folder.parent} --vectors RANKER"
    )
