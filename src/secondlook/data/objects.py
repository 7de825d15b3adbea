"""JSON objects, one on each line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from secondlook.data.lines import lines
from secondlook.errors import MalformedInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def objects(path: Path, example: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with its line's number; `example` is what a message shows of the form."""
    for number, line in lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MalformedInput(path, number, f"is not JSON ({error})") from error
        if type(record) is not dict:
            raise MalformedInput(path, number, f"is not a JSON object like {example}")
        if "\\ud" in line or "\\uD" in line:
            _refuse_half_characters(path, number, record)
        yield number, record


def _refuse_half_characters(path: Path, number: int, record: dict[str, Any]) -> None:
    """JSON can spell half of a surrogate pair, which is no text and could never be written."""
    try:
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise MalformedInput(
            path, number, f"holds half of a surrogate pair ({error.object[error.start]!r}); mend it"
        ) from error
