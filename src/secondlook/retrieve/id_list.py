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
_HASHED = np.dtype([("hash", np.uint64), ("position", np.int64)])
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
    """Where each id stands in an IdList: its hashes in order, searched by halving."""

    def __init__(self, folder: Path, ids: IdList) -> None:
        self._folder, self._ids = folder, ids
        self._order = np.load(folder / ID_ORDER, mmap_mode="r")
        if len(self._order) != len(ids):
            raise ValueError(f"{ID_ORDER} and {ID_ENDS} differ")

    @staticmethod
    def write(folder: Path, ids: IdList) -> None:
        """Hash and sort the ids; a million take some seconds and 16 MB."""
        order = np.empty(len(ids), _HASHED)
        for start in range(0, len(ids), _AT_ONCE):
            positions = np.arange(start, min(start + _AT_ONCE, len(ids)))
            order["hash"][positions] = _hashes(ids.at(positions))
            order["position"][positions] = positions
        order.sort(order=["hash", "position"])
        np.save(folder / ID_ORDER, order)

    def of(self, doc_ids: Sequence[str]) -> NDArray[np.int64]:
        """The position of each id; raises MissingDocument."""
        hashes = _hashes(doc_ids)
        places = np.searchsorted(self._order["hash"], hashes)
        found: NDArray[np.int64] = self._order["position"][np.minimum(places, len(self._order) - 1)]
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
        while place < len(self._order) and self._order["hash"][place] == hashed:
            position = int(self._order["position"][place])
            if self._ids.at(np.array([position])) == [doc_id]:
                return position
            place += 1
        return None


def _hashes(doc_ids: Iterable[str]) -> NDArray[np.uint64]:
    digests = b"".join(
        blake2b(doc_id.encode(errors="surrogatepass"), digest_size=8).digest() for doc_id in doc_ids
    )
    return np.frombuffer(digests, np.uint64)
