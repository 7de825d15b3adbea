"""The first look: one file per engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.errors import IndexProblem
from secondlook.retrieve.folder import Index, IndexCard, UpdatableIndex, read_card

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Index", "IndexCard", "UpdatableIndex", "open_index", "open_updatable"]


def open_index(folder: Path) -> Index:
    """The engine that `folder/index.json` names, ready to search."""
    match read_card(folder).engine:
        case "bm25s":
            from secondlook.retrieve.bm25 import Bm25Index

            return Bm25Index.open(folder)
        case "opensearch":
            from secondlook.retrieve.opensearch import OpenSearchIndex

            return OpenSearchIndex.open(folder)


def open_updatable(folder: Path) -> UpdatableIndex:
    """The same, of an engine whose documents can change."""
    index = open_index(folder)
    if not isinstance(index, UpdatableIndex):
        raise IndexProblem(
            f"{folder} is a {index.card.engine} index, which cannot change; build it anew from the "
            f"changed corpus: secondlook index CORPUS {folder} --replace"
        )
    return index
