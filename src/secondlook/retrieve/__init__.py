"""The first look: one file per engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.retrieve.folder import Index, IndexCard, read_card

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Index", "IndexCard", "open_index"]


def open_index(folder: Path) -> Index:
    """The engine that `folder/index.json` names, ready to search."""
    match read_card(folder).engine:
        case "bm25s":
            from secondlook.retrieve.bm25 import Bm25Index

            return Bm25Index.open(folder)
        case "opensearch":
            from secondlook.retrieve.opensearch import OpenSearchIndex

            return OpenSearchIndex.open(folder)
