"""The index folder: `index.json` says engine, settings and corpus; every later verb takes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from pydantic import ValidationError

from secondlook.data.durable import write_at_once
from secondlook.errors import IndexProblem, UnknownName
from secondlook.recipe import Settings
from secondlook.types import Corpus, Retriever

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from secondlook.types import Document

CARD = "index.json"


class IndexCard(Settings):
    """What an index folder says of itself."""

    version: Literal[1] = 1
    engine: Literal["bm25s", "opensearch"]
    settings: dict[str, Any]
    documents: int
    fingerprint: str
    """Of the corpus: the same documents in the same order give the same fingerprint."""


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


def write_card(folder: Path, card: IndexCard) -> None:
    """Written last, and at once: a folder without it is an index that was never finished."""
    folder.mkdir(parents=True, exist_ok=True)
    write_at_once(folder / CARD, card.model_dump_json(indent=2) + "\n")


def read_card(folder: Path) -> IndexCard:
    """The card of a finished index."""
    path = folder / CARD
    if not path.is_file():
        raise IndexProblem(f"{folder} is no index; make one with: secondlook index CORPUS {folder}")
    try:
        return IndexCard.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, ValidationError, UnknownName) as error:
        raise IndexProblem(
            f"{path} cannot be read ({error}); make it anew: secondlook index CORPUS {folder}"
        ) from error
