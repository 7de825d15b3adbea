"""SHA-256 of the files in a folder, kept beside them, so that a later change of any is found."""

from __future__ import annotations

import json
from hashlib import file_digest
from typing import TYPE_CHECKING

from secondlook.data.durable import write_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DIGESTS = "digests.json"


def write_digests(folder: Path, *, leave_out: Sequence[str] = ()) -> None:
    """Read all files of a folder that is complete but these, and keep their digests in it."""
    others = {folder / name for name in (DIGESTS, *leave_out)}
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path not in others)
    digests = {path.relative_to(folder).as_posix(): _digest(path) for path in files}
    write_at_once(folder / DIGESTS, json.dumps(digests, indent=2) + "\n")


def changed_files(folder: Path) -> list[str]:
    """Read all files again; gives those that are gone or hold something else.

    None where no digests were kept. Files that came later are not looked at.
    """
    path = folder / DIGESTS
    if not path.is_file():
        return []
    try:
        digests = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return [DIGESTS]
    if not isinstance(digests, dict):
        return [DIGESTS]
    return [name for name, digest in digests.items() if _digest(folder / name) != digest]


def without_digests(index: Path, parts: Sequence[str]) -> list[str]:
    """Of these folders in an index folder, those that are there and keep no digests."""
    folders = [index / part for part in parts]
    return [
        folder.name for folder in folders if folder.is_dir() and not (folder / DIGESTS).is_file()
    ]


def _digest(path: Path) -> str:
    """Empty for a file that is not there."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
