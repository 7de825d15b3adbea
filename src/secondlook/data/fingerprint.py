"""One name for a corpus: the same documents in the same order give the same fingerprint."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.types import Document


class Fingerprint:
    """SHA-256 over id, title and text of the documents added so far."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, document: Document) -> None:
        """Take one more document in; where a field ends is part of the hash."""
        for field in (document.id, document.title, document.text):
            encoded = field.encode()
            self._hash.update(len(encoded).to_bytes(8, "little"))
            self._hash.update(encoded)

    def digest(self) -> str:
        """The fingerprint up to here; more documents may follow."""
        return f"sha256:{self._hash.hexdigest()}"
