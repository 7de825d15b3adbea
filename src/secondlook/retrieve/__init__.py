"""The first stage: one file per engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.errors import IndexProblem
from secondlook.retrieve.engines import ENGINES
from secondlook.retrieve.folder import IndexCard, opening
from secondlook.retrieve.index import Index, UpdatableIndex

if TYPE_CHECKING:
    from pathlib import Path

    from secondlook.retrieve.engines import Engine

__all__ = ["ENGINES", "Index", "IndexCard", "UpdatableIndex", "open_index", "open_updatable"]


def open_index(folder: Path) -> Engine:
    """The engine that `folder/index.json` names, ready to search."""
    with opening(folder) as card:
        return ENGINES[card.engine].open(folder)


def open_updatable(folder: Path) -> UpdatableIndex:
    """The same, of an engine whose documents can change."""
    index = open_index(folder)
    if not isinstance(index, UpdatableIndex):
        advice = getattr(
            index,
            "how_to_change",
            f"build it anew from the changed corpus: secondlook index CORPUS {folder} --replace",
        )
        raise IndexProblem(
            f"{folder} is a {index.card.engine} index, which cannot change; {advice}"
        )
    return index
