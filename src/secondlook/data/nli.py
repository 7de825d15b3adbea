"""Natural-language inference data (MNLI, SNLI): pairs of sentences, and whether one follows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from secondlook.data.columns import shown
from secondlook.data.lines import lines
from secondlook.errors import MalformedInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Label = Literal["entailment", "neutral", "contradiction"]
LABELS: tuple[Label, ...] = get_args(Label)
_UNDECIDED = "-"
"""The label where the annotators did not agree."""
_COLUMNS = ("sentence1", "sentence2", "gold_label")


@dataclass(frozen=True, slots=True)
class NliPair:
    """Two sentences, and whether the second follows from the first."""

    premise: str
    hypothesis: str
    label: Label


def read_nli(path: Path) -> Iterator[NliPair]:
    """The pairs of MNLI's or SNLI's .jsonl files, or of GLUE's .tsv, whose header names columns.

    Pairs on whose label the annotators did not agree are left out.
    """
    numbered = lines(path)
    number, first = next(numbered)
    if first.lstrip().startswith("{"):
        yield from _pair(path, number, _record(path, number, first))
        for number, line in numbered:
            yield from _pair(path, number, _record(path, number, line))
        return
    header = first.split("\t")
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
        raise MalformedInput(
            path, number, f"the first line names no column {missing[0]!r}; it begins {shown(first)}"
        )
    for number, line in numbered:
        fields = line.split("\t")
        if len(fields) != len(header):
            raise MalformedInput(path, number, f"{len(fields)} columns, not {len(header)}")
        yield from _pair(path, number, dict(zip(header, fields, strict=True)))


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise MalformedInput(path, number, f"is no JSON ({error})") from error
    if not isinstance(record, dict) or any(type(record.get(name)) is not str for name in _COLUMNS):
        raise MalformedInput(path, number, f"must have texts {', '.join(_COLUMNS)}")
    return record


def _pair(path: Path, number: int, record: dict[str, Any]) -> Iterator[NliPair]:
    label = record["gold_label"]
    if label == _UNDECIDED:
        return
    if label not in LABELS:
        raise MalformedInput(
            path, number, f"the label must be one of {', '.join(LABELS)}, but is {shown(label)}"
        )
    yield NliPair(record["sentence1"], record["sentence2"], label)
