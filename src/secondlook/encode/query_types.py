"""What kind of answer a query asks for: the labels, and files of labelled queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.data.lines import lines
from secondlook.errors import MalformedInput, UnknownName

if TYPE_CHECKING:
    from pathlib import Path

TYPES = ("description", "entity", "location", "numeric", "person")
"""MS MARCO's five, as DR-BERT writes them before the query."""

_OF_TREC = {
    "abbr": "description",
    "desc": "description",
    "enty": "entity",
    "hum": "person",
    "loc": "location",
    "num": "numeric",
}

_LABEL_COLUMNS = ("type", "coarse", "label")
_TEXT_COLUMNS = ("query", "question", "text")


def read_type(label: str) -> str:
    """One of TYPES, from MS MARCO's names or TREC's six coarse classes, in any case."""
    name = label.strip().lower()
    name = _OF_TREC.get(name, name)
    if name not in TYPES:
        raise UnknownName("query type", label, (*TYPES, *map(str.upper, _OF_TREC)))
    return name


def read_trec_class(label: str) -> str:
    """One of TREC's six coarse classes, in any case: ABBR, DESC, ENTY, HUM, LOC, NUM."""
    name = label.strip().lower()
    if name not in _OF_TREC:
        raise UnknownName("class of TREC", label, tuple(map(str.upper, _OF_TREC)))
    return name.upper()


def read_labelled(path: Path) -> list[tuple[str, str]]:
    """(query, label) from a tab-separated file whose first line names the columns.

    The label stands under `type`, `coarse` or `label`, the query under `query`, `question` or
    `text`; other columns are passed over, and so are blank lines. Labels come as the file has them.
    """
    rows = lines(path, may_be_blank=True, may_be_empty=True)
    header = next((line for _, line in rows), "").split("\t")
    label = next((i for i, name in enumerate(header) if name in _LABEL_COLUMNS), None)
    text = next((i for i, name in enumerate(header) if name in _TEXT_COLUMNS), None)
    if label is None or text is None:
        raise MalformedInput(
            path, 1, "the first line has to name a column `type` and a column `query`"
        )
    labelled = []
    for number, line in rows:
        if not line:
            continue
        row = line.split("\t")
        if len(row) <= max(label, text):
            raise MalformedInput(path, number, f"{len(row)} columns, not {len(header)}")
        labelled.append((row[text], row[label]))
    if not labelled:
        raise MalformedInput(path, None, "no labelled queries below the first line")
    return labelled
