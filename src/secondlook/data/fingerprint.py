"""A corpus has one name that cannot lie: a digest of its documents, in their order."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from secondlook.errors import MalformedInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secondlook.types import Document


class Fingerprint:
    """The same documents in the same order give the same digest; any difference, another.

    SHA-256 over each document's id, title and text in UTF-8, each after its length in eight
    bytes, so that no two different corpora can run together into the same bytes. Queries and
    weights, where a document has them, follow as JSON behind a length that no text has.
    """

    def __init__(self) -> None:
        self._hash = sha256()
        self.documents = 0
        """How many were added."""

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Self:
        """All documents counted in."""
        made = cls()
        for document in documents:
            made.add(document)
        return made

    def add(self, document: Document) -> None:
        """Count one more document in.

        Raises MalformedInput for half a surrogate pair, which UTF-8 has no bytes for: no file,
        tokenizer or search engine would take it further.
        """
        try:
            parts = [part.encode() for part in (document.id, document.title, document.text)]
            more = _more(document)
        except UnicodeEncodeError as error:
            raise MalformedInput(
                "the corpus",
                None,
                f"document {document.id!r} holds {error.object[error.start]!r}, half of a "
                "surrogate pair, which is no character; replace it in the source (U+FFFD is usual)",
            ) from error
        self._hash.update(b"".join(len(part).to_bytes(8, "little") + part for part in parts) + more)
        self.documents += 1

    def digest(self) -> str:
        """`sha256:` and 64 hexadecimal digits, for the documents added so far."""
        return f"sha256:{self._hash.hexdigest()}"


def _more(document: Document) -> bytes:
    """What only the first stage goes by; nothing for most documents."""
    if not document.queries and document.weights is None:
        return b""
    weights = None if document.weights is None else dict(document.weights)
    more = json.dumps([document.queries, weights], ensure_ascii=False).encode()
    return b"\xff" * 8 + len(more).to_bytes(8, "little") + more
