"""TREC CAR: section outlines as queries, Wikipedia paragraphs as the corpus.

Its judgments and runs are TREC's.
"""

from __future__ import annotations

import re
import warnings
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from secondlook.data.columns import shown
from secondlook.data.lines import first_bytes, lines, opened
from secondlook.data.rows import distinct
from secondlook.errors import MalformedInput, MissingExtra
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_HEADER = re.compile(rb"[\x82\x83\x9f]cCAR")
"""How CBOR files of version 2.0 and later begin: an array whose first element is "CAR"."""

_SITE = re.compile("^[a-z_]+wiki:")


def read_queries(path: Path) -> Iterator[Query]:
    """Section paths as queries: the article's title and every heading down to the section.

    `enwiki:Aftertaste/Foods/Wine` becomes "Aftertaste Foods Wine": the papers' "title plus section
    heading", with all headings of the path, as dl4marco-bert (the code of that paper), Anserini
    and ir_datasets have it. Reads the list of paths, one a line, or the outlines in CBOR.
    """
    found = _outlines(path) if is_cbor(first_bytes(path, 1)) else _paths(path)
    return distinct(found, path)


def read_corpus(path: Path) -> Iterator[Document]:
    """The paragraphs of a CBOR file, links as their words; needs the extra `datasets`.

    That no paragraph comes twice is for the corpus store to see.
    """
    for paragraph in _elements(path, "iter_paragraphs"):
        yield Document(paragraph.para_id, paragraph.get_text())


def is_cbor(start: bytes) -> bool:
    """Whether a file begins with an array of CBOR, as no text in UTF-8 does."""
    return b"\x80" <= start[:1] <= b"\x9f"


def _paths(path: Path) -> Iterator[tuple[Query, int]]:
    for number, line in lines(path):
        headings = _SITE.sub("", line).split("/")
        if any(map(str.isspace, line)) or "" in headings:
            raise MalformedInput(
                path,
                number,
                f"must be a path like enwiki:Article%20Name/Heading, but is {shown(line)}",
            )
        try:
            text = " ".join(unquote(heading, errors="strict") for heading in headings)
        except UnicodeDecodeError as error:
            raise MalformedInput(path, number, f"does not spell UTF-8: {shown(line)}") from error
        yield Query(line, text), number


def _outlines(path: Path) -> Iterator[tuple[Query, None]]:
    for page in _elements(path, "iter_outlines"):
        for sections in page.flat_headings_list():
            ids = [page.page_id, *(section.headingId for section in sections)]
            headings = [page.page_name, *(section.heading for section in sections)]
            yield Query("/".join(ids), " ".join(headings)), None


def _elements(path: Path, reader: str) -> Iterator[Any]:
    """What trec-car-tools makes of the file; every way it can fail is the file's fault."""
    read: Callable[[_Bytes], Iterator[Any]] = getattr(_trec_car(path), reader)
    count = 0
    with opened(path) as stream:
        try:
            for element in read(_Bytes(path, stream)):
                count += 1
                yield element
        except MalformedInput:
            raise
        except Exception as error:  # it raises whatever odd bytes lead it into
            raise MalformedInput(
                path, None, f"is not the CBOR that TREC CAR uses, after element {count} ({error})"
            ) from error


def _trec_car(path: Path) -> Any:  # noqa: ANN401 - a module without types
    try:
        with warnings.catch_warnings():  # its docstrings hold escapes that Python warns of
            warnings.simplefilter("ignore")
            from trec_car import read_data
    except ImportError as error:
        raise MissingExtra("datasets", f"reading {path}, CBOR of TREC CAR,") from error
    return read_data


class _Bytes:
    """The file as trec-car-tools reads it, but with an end.

    At the end of a truncated file `cbor` asks for the missing bytes for ever, and trec-car-tools
    takes a list without its end mark for whole.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path, self._stream = path, stream
        self._held = stream.read(5)
        self._marks_its_end = bool(_HEADER.match(self._held))
        self._between = True

    def peek(self, size: int) -> bytes:
        """The next bytes; trec-car-tools looks at them between two elements only."""
        self._held = self._held or self._taken(size)
        if not self._held and self._marks_its_end:
            raise self._cut_short()
        self._between = True
        return self._held

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        given, self._held = self._held[:size], self._held[size:]
        if len(given) < size:
            given += self._taken(size - len(given))
        if len(given) < size:
            if self._between and not given:
                raise EOFError  # the list of an older file is whole
            raise self._cut_short()
        self._between = False
        return given

    def _taken(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except EOFError as error:  # of a truncated gz or zst; trec-car-tools would swallow it
            raise self._cut_short() from error

    def _cut_short(self) -> MalformedInput:
        return MalformedInput(self._path, None, "ends amid its elements; get the file again")
