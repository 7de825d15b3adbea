"""Which format a file or folder is in: told by its content on reading, by its name on writing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from secondlook.data import beir, car, irds, msmarco
from secondlook.data.columns import shown, words
from secondlook.data.lines import first_bytes
from secondlook.errors import MalformedInput, UnknownFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class _Start:
    """How a file begins."""

    content: bytes
    line: str
    """The first line that is not blank, or as much of it as was read."""

    def columns(self, width: int) -> bool:
        return len(self.line.split("\t")) == width

    def words(self, width: int) -> bool:
        return len(words(self.line)) == width


_LIST = re.compile(r"[^\t ]+\t(?!Q0 )[^\t ]+ [^\t]*")
_PYSERINI = re.compile(r'\{\s*"(?:id|contents)"\s*:')
_OUTLINE_PATH = re.compile(r"[a-z_]+wiki:\S+")

# For each kind of data, formats and the sign each is known by; the first that fits is taken.
_SIGNS: dict[str, dict[str, Callable[[_Start], bool]]] = {
    "corpus": {
        "car": lambda start: car.is_cbor(start.content),
        "pyserini": lambda start: bool(_PYSERINI.match(start.line)),
        "beir": lambda start: start.line.startswith("{"),
        "msmarco": lambda start: start.columns(2) or msmarco.are_documents(start.line),
    },
    "queries": {
        "car": lambda start: bool(
            car.is_cbor(start.content) or _OUTLINE_PATH.fullmatch(start.line)
        ),
        "beir": lambda start: start.line.startswith("{"),
        "trec": lambda start: start.line.startswith("<"),
        "msmarco": lambda start: start.columns(2),
    },
    "qrels": {
        "beir": lambda start: start.line == beir.HEADER,
        "trec": lambda start: start.words(4),
    },
    "run": {
        "lists": lambda start: bool(_LIST.fullmatch(start.line)),
        "trec": lambda start: start.words(6) or not start.content,
        "msmarco": lambda start: start.columns(3) and start.line.split("\t")[2].isdigit(),
    },
    "candidates": {"msmarco": lambda start: start.columns(4)},
    "triples": {
        "msmarco-ids": lambda start: start.columns(3) and " " not in start.line,
        "msmarco-texts": lambda start: start.columns(3),
    },
}

_SUFFIXES: dict[str, dict[str, str]] = {
    "corpus": {".jsonl": "beir", ".tsv": "msmarco"},
    "queries": {".jsonl": "beir", ".tsv": "msmarco", ".xml": "trec"},
    "qrels": {".tsv": "beir", ".txt": "trec", ".qrels": "trec", ".trec": "trec"},
    "run": {".trec": "trec", ".run": "trec", ".txt": "trec", ".tsv": "msmarco"},
}


def from_content(source: Path | str, kind: str, formats: Iterable[str]) -> str:
    """The format that `source` is in, one of `formats`."""
    if str(source).startswith(irds.PREFIX):
        return "irds"
    path = Path(source)
    if path.is_dir() and kind in ("corpus", "queries", "qrels"):
        beir.part(path, kind)
        return "beir"
    choice = _choice(kind, formats)
    if path.exists() and not path.is_file():
        raise UnknownFormat(f"{path} is no file to look into; name a file, or {choice}")
    start = _start(path)
    for format_, fits in _SIGNS[kind].items():
        if fits(start):
            return format_
    if not start.content:
        raise MalformedInput(path, None, "is empty; was the download or the job cut short?")
    raise UnknownFormat(
        f"{path} looks like no {kind} known here: it begins {shown(start.line)}; {choice}"
    )


def from_name(path: Path, kind: str, formats: Iterable[str]) -> str:
    """The format that a file of this name is meant to have."""
    name = PurePath(path.name.removesuffix(".gz").removesuffix(".zst"))
    suffixes = _SUFFIXES[kind]
    if name.suffix not in suffixes:
        raise UnknownFormat(
            f"{path} does not end in {', '.join(suffixes)}, with or without .gz or .zst, so that "
            "its name does not say its format; give it such an ending, or, where a format can be "
            f"given, one of {', '.join(sorted(formats))}"
        )
    return suffixes[name.suffix]


def _start(path: Path) -> _Start:
    content = first_bytes(path)
    text = content.decode("utf-8", errors="replace").removeprefix("\ufeff")
    line = text.lstrip("\r\n").split("\n", 1)[0].removesuffix("\r")
    return _Start(content, line)


def _choice(kind: str, formats: Iterable[str]) -> str:
    option = "--qrels-format" if kind == "qrels" else "--format"
    names = ", ".join(sorted(formats))
    converted = "" if kind in ("candidates", "triples") else ", or `secondlook convert` it first"
    return f"say {option} (in Python: format=) {names}{converted}"
