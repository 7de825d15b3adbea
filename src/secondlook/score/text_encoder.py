"""Single texts, each read as beside an empty other one, and a part of a ranker's network."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from secondlook.encode.encoder import Encoder
from secondlook.encode.features import Features, collate, padded
from secondlook.encode.type_classifier import TypeClassifier
from secondlook.model.checkpoint import TYPES, read_tokenizer
from secondlook.score.backends import open_export
from secondlook.score.batching import batches
from secondlook.score.export_folder import FASTEST_FIRST, Export, check_fresh, runs_here
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.model.checkpoint import Checkpoint
    from secondlook.model.settings import RankerSettings
    from secondlook.score.export_folder import ExportPart
    from secondlook.score.graph_backend import GraphBackend

_NOTHING = Document("", "")
_NO_QUERY = Query("", "", type="entity")


class PartBackend(Protocol):
    """What runs a part of a ranker's network."""

    workers: int
    """How many batches may run at once."""
    token_budget: int
    """Of a batch with its padding; the same on any machine, so that what it gives is."""

    def run(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """What the part gives, a row for each text or pair."""
        ...


def open_part(
    checkpoint: Checkpoint, part: ExportPart, *, one_at_a_time: bool = False
) -> GraphBackend | None:
    """The fastest export of a part that is there and runs here; None where torch is to run it."""
    for engine, precision in FASTEST_FIRST:
        export = Export(checkpoint.folder, engine, precision, part)
        if export.is_there() and runs_here(export):
            check_fresh(export, checkpoint)
            return open_export(export, checkpoint, one_at_a_time=one_at_a_time)
    return None


class TextEncoder:
    """Reads single texts as one ranker does. Threads may share it."""

    def __init__(self, checkpoint: Checkpoint, backend: PartBackend) -> None:
        self.settings: RankerSettings = checkpoint.settings
        folder = checkpoint.folder
        types = TypeClassifier.load(folder / TYPES) if (folder / TYPES).is_file() else None
        self._encoder = Encoder(read_tokenizer(folder), self.settings.encode, types=types)
        self._backend = backend
        self._pad_id = checkpoint.pad_id
        self._pool = ThreadPoolExecutor(backend.workers, thread_name_prefix="texts")

    def _read_queries(self, queries: Sequence[Query]) -> list[Features]:
        encoded = self._encoder.encode([(query, _NOTHING) for query in queries])
        return [_single(one, query=True) for one in encoded]

    def _read_documents(self, documents: Sequence[Document]) -> list[Features]:
        """Each with how many of its tokens were cut off."""
        encoded = self._encoder.encode([(_NO_QUERY, document) for document in documents])
        return [_single(one, query=False) for one in encoded]

    def _run(
        self,
        texts: Sequence[Features],
        take: Callable[[NDArray[np.intp], NDArray[np.float32]], None],
    ) -> None:
        """Give `take` the places of some texts and what was made of them, in several threads."""
        limit = self.settings.encode.max_length
        order = batches([padded(len(one), limit) for one in texts], self._backend.token_budget)

        def run(batch: NDArray[np.intp]) -> None:
            read = collate([texts[index] for index in batch], self._pad_id, limit)
            take(batch, self._backend.run(read))

        if len(order) == 1:  # needs no other thread
            run(order[0])
        else:
            list(self._pool.map(run, order))  # a list, so that a worker's exception is raised here


def _single(pair: Features, *, query: bool) -> Features:
    """One side of a pair, as if it stood alone."""
    part = slice(0, pair.first) if query else slice(pair.first, len(pair))
    words = pair.words[part] - pair.words[part.start]
    return Features(pair.ids[part], pair.segments[part], words, first=0, cut=pair.cut)
