"""Pyserini's JsonCollection: `{"id": …, "contents": …}` on each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.data.objects import objects
from secondlook.errors import MalformedInput
from secondlook.types import Document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EXAMPLE = '{"id": …, "contents": …}'


def read_corpus(path: Path) -> Iterator[Document]:
    """The documents; `contents` is all there is of a text, title included."""
    for number, record in objects(path, _EXAMPLE):
        doc_id, contents = record.get("id"), record.get("contents")
        if not (isinstance(doc_id, str) and doc_id and isinstance(contents, str)):
            raise MalformedInput(path, number, f"is not a JSON object like {_EXAMPLE}, both texts")
        yield Document(doc_id, contents)
