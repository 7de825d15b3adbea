"""One writer per output: a second one is told who the first is, instead of both losing their work.

The lock is the operating system's, on a hidden file beside the target. It ends with the process,
however that ends: what a killed one left behind stops nobody. Within a process it may be taken
again, by the parts of one piece of work.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from secondlook.errors import OutputInUse, Unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
"""What a file system without locks answers; work goes on there, unguarded."""
_HELD_BY_ANOTHER = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}

_held: dict[Path, _Lock] = {}
_changing = threading.RLock()  # a hold may end, by the garbage collector, while one begins


class Hold:
    """A lock on one target, until `release`, the end of this object, or that of the process."""

    def __init__(self, target: Path, kept: str) -> None:
        self.target = target.resolve()
        with _changing:
            lock = _held.get(self.target)
            self.is_first = lock is None
            """Whether nothing else in this process held it."""
            if lock is None:
                lock = _held[self.target] = _Lock(self.target)
            lock.kept.append(kept)
        self.release = weakref.finalize(self, _release, self.target, kept)
        """Let the next writer in. More than once is once."""

    def first_to_clear(self, path: Path) -> bool:
        """Whether halves of this path are of killed processes, and yet to be removed.

        While it is held, by however many parts of this process, only the first who asks is told so:
        after that halves may be of this process.
        """
        with _changing:
            cleared = _held[self.target].cleared
            if path in cleared:
                return False
            cleared.add(path)
            return True


@contextmanager
def locked(target: Path, kept: str = "") -> Iterator[Hold]:
    """Hold the target for a block. Raises OutputInUse at once where another process holds it.

    `kept` says what an interruption leaves of this target, and how to go on; without it, the
    target is as it was.
    """
    hold = Hold(target, kept)
    try:
        yield hold
    except BaseException as error:
        if hold.is_first:
            error.add_note(kept or f"{target} is as it was: run the same command again")
        raise
    finally:
        hold.release()


def left_by(error: BaseException) -> str:
    """What an exception that ends the work leaves of its outputs, and how to go on.

    Of work within work (a file of a folder that is being made) the outermost says it.
    """
    noted: list[str] = getattr(error, "__notes__", [])
    with _changing:
        held = [kept for lock in list(_held.values()) for kept in lock.kept if kept]
    return next(iter(held), "") or (noted[-1] if noted else "")


def _release(target: Path, kept: str) -> None:
    with _changing:
        lock = _held[target]
        lock.kept.remove(kept)
        if not lock.kept:
            del _held[target]
            lock.close()


class _Lock:
    """The operating system's lock, held by this process."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f".{target.name}.lock")
        self.kept: list[str] = []
        self.cleared: set[Path] = set()
        self._owner = os.getpid()
        self._file = self._taken(target)

    def _taken(self, target: Path) -> int:
        while True:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise Unwritable(f"{target} cannot be written: {error.strerror}") from error
            try:
                _lock(file)
                if _is_file_at(self.path, file):  # else its holder has just removed it
                    os.truncate(file, 0)
                    os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
                    return file
            except OSError as error:
                if error.errno in _NO_LOCKS_HERE:
                    return file
                os.close(file)
                if error.errno in _HELD_BY_ANOTHER:
                    raise OutputInUse(target, _text(self.path)) from error
                raise Unwritable(f"{target} cannot be written: {error.strerror}") from error
            os.close(file)

    def close(self) -> None:
        if os.getpid() != self._owner:  # a fork's copy: the lock is its parent's
            return
        if sys.platform != "win32":  # while it is held, so that nobody can have taken it
            self.path.unlink(missing_ok=True)
        os.close(self._file)
        if sys.platform == "win32":  # which removes no open file, not even if the next one has it
            with suppress(PermissionError):
                self.path.unlink(missing_ok=True)


def _is_file_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, 1 << 30, os.SEEK_SET)  # beyond the text, which others are to read
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
