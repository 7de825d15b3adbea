"""The columns of a line, taken apart and put together strictly: by tabs, or by white space."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from secondlook.data.lines import CORRUPTS_COLUMNS, lines
from secondlook.errors import MalformedInput, Unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SPACES = re.compile("[ \t]+")
_INTEGER = re.compile("[+-]?[0-9]{1,18}")
_NOT_IN_TABBED = re.compile("[\x00\t\n\r]")
_NOT_IN_WORD = re.compile("[\\s\x00-\x1f\x7f\ufeff]")


def tabbed(
    path: Path, numbered: Iterable[tuple[int, str]], form: str, ids: int
) -> Iterator[tuple[int, list[str]]]:
    """The columns of `form` (names parted by spaces), of which the first `ids` may not be empty."""
    width = form.count(" ") + 1
    for number, line in numbered:
        columns = line.split("\t")
        if len(columns) != width or "" in columns[:ids]:
            raise MalformedInput(
                path,
                number,
                f"must be {width} columns parted by tabs ({form}), but is {shown(line)}",
            )
        yield number, columns


def spaced(path: Path, form: str, *, may_be_empty: bool) -> Iterator[tuple[int, list[str]]]:
    """The columns of `form`, parted by spaces or tabs as trec_eval parts them."""
    width = form.count(" ") + 1
    for number, line in lines(path, refuse=CORRUPTS_COLUMNS, may_be_empty=may_be_empty):
        columns = words(line)
        if len(columns) != width:
            raise MalformedInput(
                path,
                number,
                f"must be {width} columns parted by white space ({form}), but is {shown(line)}",
            )
        yield number, columns


def words(line: str) -> list[str]:
    """What spaces and tabs part, and nothing else, as in trec_eval."""
    # Beyond ASCII, str.split would part at other characters too.
    return line.split() if line.isascii() else _SPACES.split(line.strip(" \t"))


def shown(line: str) -> str:
    """As much of a line as a message can carry."""
    return repr(line if len(line) <= 80 else line[:79] + "…")


def integer(path: Path, number: int, name: str, text: str) -> int:
    """A whole number as C would read it, nothing looser: Python's int takes `1_0`."""
    if not _INTEGER.fullmatch(text):
        raise MalformedInput(path, number, f"the {name} must be a whole number, but is {text!r}")
    return int(text)


def real(path: Path, number: int, name: str, text: str) -> float:
    """A number as C would read it; whether it is finite is asked later, of all at once."""
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        return float(text)
    except ValueError:
        raise MalformedInput(
            path, number, f"the {name} must be a number, but is {text!r}"
        ) from None


def tab_field(text: str, what: str) -> str:
    """The text, if a column parted by tabs can hold it."""
    if found := _NOT_IN_TABBED.search(text):
        raise Unwritable(
            f"{what} holds {found.group()!r}, which columns parted by tabs cannot hold; write "
            "it as beir, or replace it first"
        )
    return text


def tab_id(text: str, what: str) -> str:
    """Likewise for an id, which may not be empty, nor begin like a file."""
    if not text or text.startswith("\ufeff"):
        raise Unwritable(f"{what} {text!r} would not be read back; give it another id")
    return tab_field(text, f"{what} {text!r}")


def word(text: str, what: str) -> str:
    """The id, if a column parted by white space can hold it."""
    if not text or (found := _NOT_IN_WORD.search(text)):
        holds = f"holds {found.group()!r}" if text and found else "is empty"
        raise Unwritable(
            f"{what} {text!r} {holds}, which TREC's columns cannot hold; rename it, or write "
            "another format"
        )
    return text
