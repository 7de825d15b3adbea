"""Click logs: a query, what was shown for it from the first place down, and what was clicked.

One page of results on each line, in a format of `CLICK_FORMATS`. `jsonl`, objects of JSON:

    {"query": "cape fear", "shown": ["d3", "d1", "d7"], "clicked": ["d1"]}

`tsv`, columns parted by tabs, ids parted by spaces, the last one empty where nothing was clicked:

    cape fear<TAB>d3 d1 d7<TAB>d1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from secondlook.data.columns import tabbed, words
from secondlook.data.lines import first_bytes, lines
from secondlook.data.objects import objects
from secondlook.errors import MalformedInput
from secondlook.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


ClickReader: TypeAlias = "Callable[[Path], Iterator[tuple[int, Impression]]]"
"""Reads a click log: each impression with its line, which is named where something is wrong."""

CLICK_FORMATS: Registry[ClickReader] = Registry(
    "click-log format",
    "secondlook.click_formats",
    {
        "jsonl": "secondlook.data.clicks:read_objects",
        "tsv": "secondlook.data.clicks:read_columns",
    },
)


def read_clicks(path: Path, log_format: str = "auto") -> Iterator[Impression]:
    """The impressions; gz and zst too. `auto` tells jsonl and tsv apart, others are named."""
    if log_format == "auto":
        begins = first_bytes(path, 64).lstrip(b"\xef\xbb\xbf \t\r\n")
        log_format = "jsonl" if begins.startswith(b"{") else "tsv"
    for number, impression in CLICK_FORMATS[log_format](path):
        _check(impression, path, number)
        yield impression


def _check(impression: Impression, path: Path, number: int) -> None:
    if not impression.query.strip():
        raise MalformedInput(path, number, "the query is empty; leave the line out")
    shown = impression.shown
    if len(set(shown)) < len(shown):
        twice = next(doc_id for place, doc_id in enumerate(shown) if doc_id in shown[:place])
        raise MalformedInput(path, number, f"shows document {twice!r} twice; keep the upper")
    if unseen := sorted(impression.clicked.difference(shown)):
        raise MalformedInput(
            path, number, f"document {unseen[0]!r} was clicked, but is not among those shown"
        )


def read_objects(path: Path) -> Iterator[tuple[int, Impression]]:
    """Objects of JSON, one a line."""
    for number, record in objects(path, _EXAMPLE):
        if type(record.get("query")) is not str:
            raise MalformedInput(path, number, f'"query" must be a text, as in {_EXAMPLE}')
        for key in ("shown", "clicked"):
            ids = record.get(key)
            if type(ids) is not list or not all(type(one) is str and one for one in ids):
                raise MalformedInput(
                    path, number, f'"{key}" must be a list of document ids, as in {_EXAMPLE}'
                )
        clicked = frozenset(record["clicked"])
        yield number, Impression(record["query"], tuple(record["shown"]), clicked)


def read_columns(path: Path) -> Iterator[tuple[int, Impression]]:
    """Three columns parted by tabs."""
    for number, (query, *lists) in tabbed(path, lines(path), "query shown clicked", 1):
        shown, clicked = (words(column) if column.strip() else [] for column in lists)
        yield number, Impression(query, tuple(shown), frozenset(clicked))
