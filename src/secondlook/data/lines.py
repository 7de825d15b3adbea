"""Text lines out of plain, gz and zst files, and into them.

How odd files are handled, for every line format alike:

* compression is told by the content on reading, by the suffix (.gz, .zst) on writing;
* a UTF-8 byte order mark at the start is dropped; lines may end in LF or CRLF;
* blank lines at the end are dropped, a blank line before other lines is refused;
* invalid UTF-8, NUL, a carriage return inside a line, a truncated gz or zst file, a line of more
  than 64 MiB and an empty file are refused, with file and line.
"""

from __future__ import annotations

import gzip
import io
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

import zstandard

from secondlook.data.durable import replacing_file
from secondlook.errors import MalformedInput, Unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

BLOCK = 1 << 18
LONGEST_LINE = 64 << 20

CORRUPTS_LINES = b"\x00\r"
"""What no text line may hold."""

CORRUPTS_COLUMNS = bytes({*range(0x20), 0x7F} - set(b"\t\n"))
"""What no line of columns parted by white space may hold: every control character but the tab."""

_BYTE_ORDER_MARK = "\ufeff"
_GZIP = b"\x1f\x8b"
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60)))


def lines(
    path: Path,
    *,
    refuse: bytes = CORRUPTS_LINES,
    may_be_blank: bool = False,
    may_be_empty: bool = False,
    longest: int = LONGEST_LINE,
) -> Iterator[tuple[int, str]]:
    """Each line with its number, counted from 1, without its end.

    `may_be_blank` gives blank lines too; `may_be_empty` takes a file without any line. A line is
    refused once more than `longest` bytes of it (a block more or less) have been read.
    """
    number = 0
    given = 0  # the number of the line last given: a gap means blank lines
    with opened(path) as stream:
        for block in _whole_lines(path, stream, longest):
            rows = _decoded(path, number, block, refuse).split("\n")
            if not rows[-1]:
                rows.pop()
            for row in rows:
                number += 1
                if row or may_be_blank:
                    if given < number - 1:
                        raise MalformedInput(path, given + 1, "is a blank line; remove it")
                    given = number
                    yield number, row
    if not given and not may_be_empty:
        raise MalformedInput(path, None, "is empty; was the download or the job cut short?")


def first_bytes(path: Path, size: int = 1 << 16) -> bytes:
    """The start of a file's content, decompressed."""
    with opened(path) as stream, _mendable(path, 0):
        return stream.read(size)


def write_lines(path: Path, rows: Iterable[str]) -> None:
    """Write the lines, all or nothing.

    They go to a file beside the target, which takes the target's name only when all is on the
    disk: after any exception or interruption the target is as it was, and nothing else is left.
    Only a process killed outright leaves that file, a hidden one that ends in `.half`, and the next
    writer removes it. Raises OutputInUse where another process is writing the target.
    """
    try:
        with _replacing(path) as stream:
            for block in _blocks(rows):
                stream.write(block)
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed where they are compressed."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise MalformedInput(path, None, f"cannot be opened: {error.strerror}") from error
    with file:
        with _mendable(path, 0):
            start = file.peek(4)[:4]
        if start.startswith(_GZIP):
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file))
        elif start.startswith(_ZSTD):
            yield io.BufferedReader(_ZstdBytes(file), BLOCK)
        else:
            yield file


class _ZstdBytes(io.RawIOBase):
    """Decompressed bytes of one zst file, frame after frame.

    zstandard's own reader takes the end of a truncated file for the end of the data.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        # `zstd --long=31`, with which large dumps are packed, wants the largest window there is.
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._unread = b""
        self._ready = b""
        self._bite = 1 << 10

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            packed = self._unread or self._file.read(self._bite)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the last zstd frame is not complete")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._ready = self._frame.decompress(packed)
            self._unread = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
            # A bite gives all it holds at once: take smaller ones of what is packed tighter.
            fitting = self._bite * BLOCK // max(1, len(self._ready))
            self._bite = min(max(1 << 6, fitting), 2 * self._bite, 1 << 14)
        given = self._ready[: len(buffer)]
        buffer[: len(given)] = given
        self._ready = self._ready[len(given) :]
        return len(given)


@contextmanager
def _mendable(path: Path, number: int) -> Iterator[None]:
    """Name the file, and the line reached, where the bytes cannot be had."""
    try:
        yield
    except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
        raise MalformedInput(
            path,
            number + 1 if number else None,
            f"cannot be read on ({error}); the file is damaged or cut short, get it again",
        ) from error


def _whole_lines(path: Path, stream: IO[bytes], longest: int) -> Iterator[bytes]:
    """Blocks that end where a line ends."""
    number = 0
    parts: list[bytes] = []
    size = 0
    while True:
        with _mendable(path, number):
            block = stream.read(BLOCK)
        if not block:
            break
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join((*parts, block[:cut]))
            number += whole.count(b"\n")
            yield whole
            parts, size = [], 0
        parts.append(block[cut:])
        size += len(block) - cut
        if size > longest:
            raise MalformedInput(
                path,
                number + 1,
                f"is longer than {longest >> 20} MiB; is this a text file with line ends?",
            )
    if size:
        yield b"".join(parts)


def _decoded(path: Path, number: int, block: bytes, refuse: bytes) -> str:
    """The block's text with plain line ends; `number` lines came before it."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedInput(
            path,
            number + block.count(b"\n", 0, error.start) + 1,
            "is not UTF-8; convert the file (iconv -t UTF-8), or decompress it first if it is "
            "compressed otherwise than by gzip or zstd",
        ) from error
    if len(block.translate(None, refuse)) < len(block):
        at = next(i for i, byte in enumerate(block) if byte in refuse)
        raise MalformedInput(
            path,
            number + block.count(b"\n", 0, at) + 1,
            f"holds the control character {chr(block[at])!r}; remove it",
        )
    return text if number else text.removeprefix(_BYTE_ORDER_MARK)


def _blocks(rows: Iterable[str]) -> Iterator[bytes]:
    """The lines in blocks worth writing."""
    size = 0
    held: list[str] = []
    for row in rows:
        held.append(row)
        size += len(row)
        if size >= BLOCK:
            yield _encoded(held)
            held, size = [], 0
    if held:
        yield _encoded(held)


def _encoded(rows: list[str]) -> bytes:
    try:
        return ("\n".join(rows) + "\n").encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unwritable(
            "a text holds half of a surrogate pair, which no UTF-8 file can hold; mend what ends "
            f"in {error.object[max(0, error.start - 40) : error.start + 1]!r}"
        ) from error


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes the file `path` at the end, if all goes well."""
    with replacing_file(path) as half, half.open("xb") as file:
        packer = _packer(file, path.suffix)
        try:
            yield packer
        finally:
            if packer is not file:
                packer.close()


def _packer(file: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        # Without name and time in its header, equal content gives equal bytes.
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
        return cast("IO[bytes]", packed)
    if suffix == ".zst":
        compressor = zstandard.ZstdCompressor(write_checksum=True)
        return cast("IO[bytes]", compressor.stream_writer(file, closefd=False))
    return file
