"""Document ids by position, and positions by id, memory-mapped: millions cost no memory."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import MissingDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

IDS = "ids.utf8"
"""All ids, one after the other."""
ID_ENDS = "id_ends.npy"
ID_ORDER = "id_order.npy"
_AT_ONCE = 10_000


class IdList:
    """The ids of a folder, in the corpus's order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bytes = np.memmap(folder / IDS, dtype=np.uint8, mode="r")
        self._ends = np.load(folder / ID_ENDS, mmap_mode="r")
        if self._ends[-1] != len(self._bytes):
            raise ValueError(f"{IDS} and {ID_ENDS} differ")

    def __len__(self) -> int:
        return len(self._ends) - 1

    def at(self, positions: NDArray[np.int64]) -> list[str]:
        """The ids at these positions."""
        ends = self._ends[positions + 1].tolist()
        starts = self._ends[positions].tolist()
        view = self._bytes.data
        return [str(view[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]


class IdPositions:
    """Where each id stands in an IdList: its hashes in order, searched by halving.

    The file has two rows, hashes and positions: a search of one row copies nothing.
    """

    def __init__(self, folder: Path, ids: IdList) -> None:
        self._folder, self._ids = folder, ids
        order = np.load(folder / ID_ORDER, mmap_mode="r")
        if order.shape != (2, len(ids)):
            raise ValueError(f"{ID_ORDER} and {ID_ENDS} differ")
        self._hashes, self._positions = order[0], order[1]

    @staticmethod
    def write(folder: Path, ids: IdList) -> None:
        """Hash and sort the ids; a million take some seconds and 16 MB."""
        hashes = np.empty(len(ids), np.uint64)
        for start in range(0, len(ids), _AT_ONCE):
            positions = np.arange(start, min(start + _AT_ONCE, len(ids)))
            hashes[positions] = _hashes(ids.at(positions))
        order = np.argsort(hashes, kind="stable")
        np.save(folder / ID_ORDER, np.stack([hashes[order], order.astype(np.uint64)]))

    def of(self, doc_ids: Sequence[str]) -> NDArray[np.int64]:
        """The position of each id; raises MissingDocument."""
        hashes = _hashes(doc_ids)
        places = np.searchsorted(self._hashes, hashes)
        nearest = np.minimum(places, len(self._positions) - 1)
        found: NDArray[np.int64] = self._positions[nearest].astype(np.int64)
        missing = []
        for number, stored in enumerate(self._ids.at(found)):
            if stored == doc_ids[number]:
                continue
            position = self._among_equals(doc_ids[number], int(places[number]), hashes[number])
            if position is None:
                missing.append(doc_ids[number])
            else:
                found[number] = position
        if missing:
            raise MissingDocument(missing, f"the vectors in {self._folder}")
        return found

    def _among_equals(self, doc_id: str, place: int, hashed: np.uint64) -> int | None:
        """The position of an id whose hash another id has too; None where it is unknown."""
        while place < len(self._hashes) and self._hashes[place] == hashed:
            position = int(self._positions[place])
            if self._ids.at(np.array([position])) == [doc_id]:
                return position
            place += 1
        return None


def _hashes(doc_ids: Iterable[str]) -> NDArray[np.uint64]:
    digests = b"".join(
        blake2b(doc_id.encode(errors="surrogatepass"), digest_size=8).digest() for doc_id in doc_ids
    )
    return np.frombuffer(digests, np.uint64)
