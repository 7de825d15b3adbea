"""States of an index's documents: stored beside their vectors, for rankers that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from secondlook.retrieve.vector_files import VectorWriter
    from secondlook.types import Document

    KeepStates = Callable[[Sequence[Document]], None]


def refuse_states(
    ranker: str | Path | None, *, engine: type[object] | str, ray: str | None = None
) -> None:
    """Raise where states cannot be stored, before the corpus is read.

    `engine` is the class of the index's engine, or "attached".
    """
    from secondlook.errors import WrongArgument
    from secondlook.score.states import check_states

    if ranker is None:
        raise WrongArgument("states are stored beside vectors: give vectors too")
    if ray is not None:
        raise WrongArgument("workers of a Ray cluster make no states: leave out ray, or states")
    if engine == "attached":
        raise WrongArgument(
            "the documents of an attached index may change at any time, so that their states are "
            "not stored: leave out states"
        )
    if getattr(engine, "stores_vectors", False):
        raise WrongArgument("a cluster stores no states: leave out states, or index with bm25s")
    check_states(ranker)


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
