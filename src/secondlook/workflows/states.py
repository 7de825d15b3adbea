"""States of an index's documents: stored beside their vectors, for rankers that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from secondlook.retrieve.vector_files import VectorWriter
    from secondlook.types import Document

    KeepStates = Callable[[Sequence[Document]], None]


def state_keeper(writer: VectorWriter, ranker: Path) -> KeepStates:
    """What stores the states of documents that are added to the writer next.

    `ranker` is the copy that the index keeps.
    """
    from secondlook.retrieve.state_files import StateWriter
    from secondlook.score.states import StateEncoder
    from secondlook.score.vectors import dimension_of

    encoder = StateEncoder.load(ranker)
    states = StateWriter(writer.folder, writer.documents, dimension_of(ranker))

    def keep(documents: Sequence[Document]) -> None:
        states.add(encoder.documents(documents))

    return keep
