"""Writing that a kill cannot halve and a power cut cannot undo."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's new entries, to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Where to write what becomes the file `path` at the end, if all goes well.

    After any exception `path` is as it was, and nothing else is left.
    """
    target = path.resolve()
    half = target.with_name(f".{target.name}.{secrets.token_hex(4)}.half")
    try:
        yield half
        sync(half)
        half.replace(target)
        sync(target.parent)
    finally:
        half.unlink(missing_ok=True)


def write_at_once(path: Path, text: str) -> None:
    """Write a small file: a reader finds the old one or the new one, never half of either."""
    with replacing_file(path) as half:
        half.write_text(text, encoding="utf-8")
