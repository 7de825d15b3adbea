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

_TOKEN_BYTES = 4


def refuse_to_overwrite(output: Path, *, replace: bool) -> None:
    """Raise Unwritable if the output exists, unless it is to be replaced.

    An interrupted job that was to replace it says so again when it goes on: what it left beside
    the output may be of any job, and permits nobody to overwrite.
    """
    if output.exists() and not replace:
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
    return target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.half")


def left_beside(target: Path, suffix: str) -> list[Path]:
    """Hidden files or folders of the target that end so, as `half_of` names them.

    Those of a longer name that begins alike, `corpus.jsonl.gz` beside `corpus.jsonl`, are not.
    """
    token = "[0-9a-f]" * 2 * _TOKEN_BYTES
    return sorted(target.parent.glob(f".{escape(target.name)}.{token}{suffix}"))


def remove_halves(target: Path) -> None:
    """Remove what killed processes left half made; only for who holds the lock on the target."""
    for half in left_beside(target, ".half"):
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
