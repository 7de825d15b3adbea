"""A folder of results is for the arguments it was begun with."""

from __future__ import annotations

import json
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

CONTENTS = "the contents of "
"""Begins the names of values that are digests, which say nothing to people."""


def contents(paths: Iterable[Path]) -> str:
    """A digest of the files and their names; a gigabyte takes a second or two."""
    whole = sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            whole.update(f"{path.name}\0{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def claim(folder: Path, settings: Mapping[str, tuple[str | int | None, Path]]) -> None:
    """Note in the folder the settings of the work: each value by name, and what is made with it.

    Raises SecondlookError where a value was another before and what is made with it is there: it
    would pass for the result of the settings of now.
    """
    from secondlook.data.durable import write_at_once
    from secondlook.errors import SecondlookError

    kept = folder / "asked.json"
    noted = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    before = {name.lstrip("-").lower(): value for name, value in noted.items()}  # 0.1: as options
    if before.keys() - settings.keys():
        raise SecondlookError(f"{folder} holds the work of another command; name another folder")
    others = [
        f"other {name.removeprefix('the ')}" if name.startswith(CONTENTS) else f"{name} {value}"
        for name, value in before.items()
        if settings[name][0] != value and settings[name][1].exists()
    ]
    if others:
        raise SecondlookError(
            f"{folder} was started with {', '.join(others)}; use the same to resume, or another "
            "folder to start over"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_at_once(kept, json.dumps({name: value for name, (value, _) in settings.items()}))
