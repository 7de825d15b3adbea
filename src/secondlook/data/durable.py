"""Writing that a kill cannot halve and a power cut cannot undo."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from glob import escape
from typing import TYPE_CHECKING

from secondlook.data.lock import locked
from secondlook.errors import Unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def refuse_to_overwrite(output: Path, *, replace: bool) -> None:
    """Raise Unwritable if the output exists, unless it is to be replaced.

    An interrupted job that was to become this output may continue.
    """
    unfinished = any(output.parent.glob(f".{escape(output.name)}.part*"))
    if output.exists() and not (replace or unfinished):
        raise Unwritable(f"{output} already exists; to overwrite it, give `replace=True`")


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's new entries, to the disk."""
    windows = os.name == "nt"
    if windows and path.is_dir():  # which opens no folders
        return
    # Windows syncs only what is open for writing; elsewhere a file may be read-only by now.
    handle = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Where to write what becomes the file `path` at the end, if all goes well.

    After any exception `path` is as it was, and nothing else is left; what a killed process left is
    removed by the next. Raises OutputInUse where another process is writing the same file.
    """
    target = path.resolve()
    with locked(target) as hold:
        if hold.first_to_clear(target):
            remove_halves(target)
        with _moved_into(target) as half:
            yield half


def write_at_once(path: Path, text: str) -> None:
    """Write a small file: a reader finds the old one or the new one, never half of either."""
    with _moved_into(path.resolve()) as half:
        half.write_text(text, encoding="utf-8")


def half_of(target: Path) -> Path:
    """A new name beside the target, for what is to take its place."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.half")


def remove_halves(target: Path) -> None:
    """Remove what killed processes left half made; only for who holds the lock on the target."""
    for half in target.parent.glob(f".{escape(target.name)}.*.half"):
        if half.is_dir():
            shutil.rmtree(half)
        else:
            half.unlink()


@contextmanager
def _moved_into(target: Path) -> Iterator[Path]:
    half = half_of(target)
    try:
        yield half
        sync(half)
        half.replace(target)
        sync(target.parent)
    finally:
        half.unlink(missing_ok=True)
