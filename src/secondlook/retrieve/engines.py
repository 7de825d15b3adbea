"""The search engines by name: what `index --engine` takes and `index.json` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from secondlook.registry import Registry
from secondlook.retrieve.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from secondlook.recipe import Settings
    from secondlook.types import Document


class Health(NamedTuple):
    """Whether an engine can be used on this machine, and what there is to say of it."""

    usable: bool
    note: str


class Engine(Index, Protocol):
    """A search engine: an index that it makes, opens and searches.

    `build` writes the index folder's card last (`write_card`), with the engine's name in it, and
    `open` reads it (`read_card`); whatever else the folder holds is the engine's own.
    """

    @classmethod
    def options(cls, folder: Path, **given: Any) -> Settings:  # noqa: ANN401 - each its own
        """The settings of a new index, by what the user gave; ignores other engines' options."""
        ...

    @classmethod
    def build(cls, folder: Path, documents: Iterable[Document], settings: Any) -> Self:  # noqa: ANN401
        """Index the documents under these settings, which `options` made."""
        ...

    @classmethod
    def open(cls, folder: Path) -> Self:
        """A finished index, ready to search."""
        ...

    @classmethod
    def check(cls, url: str | None) -> Health:
        """Whether it can be used here; `url` is the server to ask, where there is one."""
        ...

    def stored_bytes(self) -> int:
        """What the index takes on disk, wherever that is; 0 where that cannot be known.

        Without vectors, if these are told apart: a plan adds what they take.
        """
        ...


ENGINES: Registry[type[Engine]] = Registry(
    "search engine",
    "secondlook.engines",
    {
        "bm25s": "secondlook.retrieve.bm25:Bm25Index",
        "opensearch": "secondlook.retrieve.opensearch:OpenSearchIndex",
        "attached": "secondlook.retrieve.attached:AttachedIndex",
    },
)


def known(settings: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given options that these settings have, and that are set."""
    return {
        name: value
        for name, value in given.items()
        if name in settings.model_fields and value is not None
    }
