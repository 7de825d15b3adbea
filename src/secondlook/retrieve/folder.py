"""The index folder: `index.json` says engine, settings and corpus; every later verb takes it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError, field_validator

from secondlook.analyze import ANALYZERS, DEFAULT
from secondlook.data.durable import write_at_once
from secondlook.errors import IndexProblem, UnknownName
from secondlook.recipe import Settings
from secondlook.retrieve.engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CARD = "index.json"


class IndexCard(Settings):
    """What an index folder says of itself."""

    version: Literal[1] = 1
    engine: str
    settings: dict[str, Any]
    documents: int
    fingerprint: str
    """Of the corpus: the same documents in the same order give the same fingerprint."""

    @property
    def analyzer(self) -> str:
        """By which analyzer words of a text and of a query match; older indexes are English.

        One that only the cluster knows has none here: words match as they are written.
        """
        name = str(self.settings.get("analyzer", DEFAULT))
        return name if name in ANALYZERS else "none"

    @field_validator("engine")
    @classmethod
    def _known_engine(cls, name: str) -> str:
        if name not in ENGINES:
            raise UnknownName(ENGINES.kind, name, ENGINES.names())
        return name


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
    except (ValueError, UnknownName) as error:
        raise _unreadable(folder, error) from error


@contextmanager
def opening(folder: Path) -> Iterator[IndexCard]:
    """The card, for an engine to open the folder in this block.

    Raises IndexProblem where the engine refuses a setting of the card: a name that is unknown in
    the folder, damaged or of a newer version, is not one that the user has misspelt.
    """
    card = read_card(folder)
    try:
        yield card
    except (ValidationError, UnknownName) as error:
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: Exception) -> IndexProblem:
    return IndexProblem(
        f"{folder / CARD} cannot be read ({error}); make it anew: secondlook index CORPUS {folder}"
    )
