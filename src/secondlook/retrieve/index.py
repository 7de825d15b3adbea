"""What an engine that is filled promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from secondlook.types import Corpus, Retriever

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from secondlook.retrieve.folder import IndexCard
    from secondlook.types import Document


@runtime_checkable
class Index(Retriever, Corpus, Protocol):
    """An engine that is filled: it finds documents and holds their texts."""

    @property
    def card(self) -> IndexCard:
        """Engine, settings and corpus."""
        ...

    def verify(self) -> None:
        """Look at everything that is kept; raises where it is not what was indexed."""
        ...


@runtime_checkable
class UpdatableIndex(Index, Protocol):
    """An engine whose documents can change one by one while it serves."""

    def upsert(self, documents: Iterable[Document]) -> None:
        """Add documents, or replace those of the same id; the next search sees them."""
        ...

    def delete(self, doc_ids: Sequence[str]) -> None:
        """Remove documents; raises MissingDocument, and removes none, if one is unknown."""
        ...


def signals_of(index: Index, doc_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Numbers and dates of documents, by field; none where the engine gives no signals."""
    signals = getattr(index, "signals", None)
    return [{} for _ in doc_ids] if signals is None else signals(doc_ids)
