"""Writing that a kill cannot halve and a power cut cannot undo."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def write_at_once(path: Path, text: str) -> None:
    """Write a small file: a reader finds the old one or the new one, never half of either."""
    half = path.with_name(f".{path.name}.{secrets.token_hex(4)}.half")
    try:
        half.write_text(text, encoding="utf-8")
        sync(half)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
