"""States of documents' tokens, beside their vectors: fp16, memory-mapped.

`INDEX/vectors/` then holds states.bin, a row for each token; state_words.bin, the word that each
token belongs to; and state_counts.bin, how many tokens each document has.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from secondlook.errors import IndexProblem
from secondlook.retrieve.vector_files import ENCODER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from secondlook.retrieve.vector_files import VectorCard, VectorFiles

_STATES, _WORDS, _COUNTS = "states.bin", "state_words.bin", "state_counts.bin"
_STATE, _WORD, _COUNT = np.float16, np.uint16, np.uint32


class States(NamedTuple):
    """The tokens of one document."""

    rows: NDArray[np.float16]  # [tokens, hidden]
    words: NDArray[np.uint16]  # [tokens]


class StateWriter:
    """States in the making, in the folder of a VectorWriter that has saved so many documents.

    What was added for others is thrown away. All that `add` was given is on the disk when it
    returns: add a batch here first, then there.
    """

    def __init__(self, folder: Path, documents: int, hidden: int) -> None:
        self._folder = folder
        tokens = int(_counts(folder)[:documents].sum())
        sizes = {
            _STATES: tokens * hidden * np.dtype(_STATE).itemsize,
            _WORDS: tokens * np.dtype(_WORD).itemsize,
            _COUNTS: documents * np.dtype(_COUNT).itemsize,
        }
        for name, size in sizes.items():
            path = folder / name
            path.touch()
            if path.stat().st_size < size:
                raise _damaged(folder, f"{name} is too short")
            os.truncate(path, size)

    def add(self, texts: Sequence[tuple[NDArray[np.floating], NDArray[np.integer]]]) -> None:
        """Append the states and the word numbers of some documents."""
        self._append(_STATES, (rows.astype(_STATE) for rows, _ in texts))
        self._append(_WORDS, (words.astype(_WORD) for _, words in texts))
        self._append(_COUNTS, [np.array([len(rows) for rows, _ in texts], _COUNT)])

    def _append(self, name: str, arrays: Iterable[NDArray[np.generic]]) -> None:
        with (self._folder / name).open("ab") as file:
            for array in arrays:
                file.write(array.tobytes())
            file.flush()
            os.fsync(file.fileno())


class StoredStates:
    """The states in a finished folder of vectors. Threads may share them."""

    def __init__(self, files: VectorFiles) -> None:
        card, folder = files.card, files.folder
        self.ranker = folder / ENCODER
        """The ranker that made them."""
        self._positions = files.positions
        try:
            self._ends = np.concatenate([[0], np.cumsum(_counts(folder), dtype=np.int64)])
            tokens, width = card.state_tokens, card.dimension
            # plain arrays, which are cut faster than memory maps
            self._rows = np.asarray(np.memmap(folder / _STATES, _STATE, "r", shape=(tokens, width)))
            self._words = np.asarray(np.memmap(folder / _WORDS, _WORD, "r", shape=(tokens,)))
        except (OSError, ValueError) as error:
            raise _damaged(folder, error) from error
        if (len(self._ends) - 1, self._ends[-1]) != (card.documents, tokens):
            raise _damaged(folder, "its parts do not belong together")

    def read(self, doc_ids: Sequence[str]) -> list[States]:
        """The states of these documents, read from the disk when they are used.

        Raises MissingDocument.
        """
        places = self._positions.of(doc_ids)
        both = zip(self._ends[places].tolist(), self._ends[places + 1].tolist(), strict=True)
        return [States(self._rows[start:end], self._words[start:end]) for start, end in both]


def count_tokens(folder: Path) -> int:
    """Tokens whose states were written to a folder of vectors; 0 where there are none."""
    return int(_counts(folder).sum())


def told_states(card: VectorCard) -> str:
    """The end of a line about vectors: what the states beside them take; empty without states."""
    if not card.state_tokens:
        return ""
    width = card.dimension * np.dtype(_STATE).itemsize + np.dtype(_WORD).itemsize
    taken = card.state_tokens * width / card.documents
    return f", states of {card.state_tokens:,} tokens ({taken:,.0f} bytes per passage)"


def _counts(folder: Path) -> NDArray[np.uint32]:
    path = folder / _COUNTS
    return np.fromfile(path, _COUNT) if path.is_file() else np.empty(0, _COUNT)


def _damaged(folder: Path, reason: object) -> IndexProblem:
    return IndexProblem(
        f"the states in {folder} are damaged ({reason}); remove that folder and make them anew: "
        f"secondlook index CORPUS {folder.parent} --vectors RANKER --states"
    )
