"""Click logs: a query, what was shown for it from the first place down, and what was clicked.

One page of results on each line, in either of two forms. As objects of JSON:

    {"query": "cape fear", "shown": ["d3", "d1", "d7"], "clicked": ["d1"]}

As columns parted by tabs, ids parted by spaces, the last one empty where nothing was clicked:

    cape fear<TAB>d3 d1 d7<TAB>d1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondlook.data.columns import tabbed, words
from secondlook.data.lines import first_bytes, lines
from secondlook.data.objects import objects
from secondlook.errors import MalformedInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EXAMPLE = '{"query": "cape fear", "shown": ["d3", "d1"], "clicked": ["d1"]}'


@dataclass(frozen=True, slots=True)
class Impression:
    """A page of results as somebody saw it."""

    query: str
    shown: tuple[str, ...]
    """Document ids from the first place down; none where nothing was found."""
    clicked: frozenset[str]
    """Those of them that were clicked."""


def read_clicks(path: Path) -> Iterator[Impression]:
    """The impressions, in either form; gz and zst too."""
    json_lines = first_bytes(path, 64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    for number, (query, shown, clicked) in _objects(path) if json_lines else _columns(path):
        if not query.strip():
            raise MalformedInput(path, number, "the query is empty; leave the line out")
        if len(set(shown)) < len(shown):
            twice = next(one for place, one in enumerate(shown) if one in shown[:place])
            raise MalformedInput(path, number, f"shows document {twice!r} twice; keep the upper")
        for doc_id in clicked:
            if doc_id not in shown:
                raise MalformedInput(
                    path, number, f"document {doc_id!r} was clicked, but is not among those shown"
                )
        yield Impression(query, tuple(shown), frozenset(clicked))


def _objects(path: Path) -> Iterator[tuple[int, tuple[str, list[str], list[str]]]]:
    for number, record in objects(path, _EXAMPLE):
        if type(record.get("query")) is not str:
            raise MalformedInput(path, number, f'"query" must be a text, as in {_EXAMPLE}')
        for key in ("shown", "clicked"):
            ids = record.get(key)
            if type(ids) is not list or not all(type(one) is str and one for one in ids):
                raise MalformedInput(
                    path, number, f'"{key}" must be a list of document ids, as in {_EXAMPLE}'
                )
        yield number, (record["query"], record["shown"], record["clicked"])


def _columns(path: Path) -> Iterator[tuple[int, tuple[str, list[str], list[str]]]]:
    for number, (query, *lists) in tabbed(path, lines(path), "query shown clicked", 1):
        shown, clicked = (words(column) if column.strip() else [] for column in lists)
        yield number, (query, shown, clicked)
