"""Whether an attached index is still what was attached: its fields, and the indices behind it."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from secondlook.errors import EngineProblem, IndexProblem
from secondlook.retrieve.attached_mapping import IndexState, named
from secondlook.retrieve.folder import IndexCard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from secondlook.retrieve.attached_mapping import IndexMapping
    from secondlook.retrieve.attached_reader import IndexReader
    from secondlook.retrieve.attached_settings import AttachedSettings

_LOGGER = logging.getLogger("secondlook.retrieve")
"""Goes to standard error, or to a server's log."""


class IndexWatch:
    """Notices that an alias stands for another index, by the index that hits come from."""

    def __init__(self, reader: IndexReader, settings: AttachedSettings, now: IndexState) -> None:
        self._reader, self._settings = reader, settings
        self._lock = threading.Lock()
        self.now, self.card = now, card_of(settings, now)

    def notice(self, hits: Iterable[Mapping[str, Any]]) -> None:
        """Look at the index again if hits are of an index that was not behind its name."""
        strange = {hit.get("_index") for hit in hits} - {None, *self.now.indices}
        if not strange or not self._lock.acquire(blocking=False):
            return
        try:
            before = self.now
            with suppress(EngineProblem):  # this search has its answer
                self.look()
            if changes := before.changes(self.now):
                _LOGGER.warning("%s has changed: %s", self._settings.name, "; ".join(changes))
        finally:
            self._lock.release()

    def look(self) -> IndexState:
        """The index as it is now; raises IndexProblem where the texts' fields are gone."""
        mapping = self._reader.mapping()
        refuse_unreadable(self._settings, mapping)
        self.now = IndexState.of(mapping, self._reader.count())
        self.card = card_of(self._settings, self.now)
        return self.now


def card_of(settings: AttachedSettings, now: IndexState) -> IndexCard:
    """What an index folder says of an attached index."""
    read = (settings.name, *now.indices, settings.text, settings.title, settings.id)
    return IndexCard(
        engine="attached",
        settings=settings.model_dump(mode="json"),
        documents=now.documents,
        fingerprint=f"attached:{sha256(chr(0).join(read).encode()).hexdigest()}",
    )


def refuse_unreadable(settings: AttachedSettings, mapping: IndexMapping) -> None:
    """Raises IndexProblem where nothing could be read of the documents."""
    if not mapping.has_source:
        raise IndexProblem(
            f"{settings.name} does not keep its documents (_source is disabled), so that nothing "
            "can be read by a re-ranker: attach an index that does"
        )
    for path in settings.read_fields:
        field = mapping.fields.get(path)
        if field is not None and field.subfield:
            above = path.rpartition(".")[0]
            raise IndexProblem(
                f"{path} is another way to index a field, and no document holds it"
                + (f": write {{{{{above}}}}}" if above in mapping.fields else "")
            )
    gone = [
        path
        for path in settings.read_fields
        if path in settings.seen.fields and path not in mapping.fields
    ]
    if settings.id in gone or all(path in gone for path in settings.text_template().paths):
        raise IndexProblem(
            f"{settings.name} no longer has {named(gone)}, or this user may not read it: ask for "
            "the right to read it, or attach the index again with other fields"
        )
