"""The one door to the field's formats: read and write by name, or find the format out.

Readers are iterators: neither a corpus nor a run is ever held. What a writer wrote is read back
equal, and what its format has no place for is refused. Only a run may be empty.
"""
# ruff: noqa: A002 - `format` is what everyone calls it

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from secondlook.data import beir, car, irds, lists, msmarco, pyserini, trec
from secondlook.data.lines import write_lines
from secondlook.data.recognise import from_content, from_name
from secondlook.errors import UnknownName, Unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from secondlook.types import Document, Pair, Qrels, Query, Ranking

T = TypeVar("T")

Source = Path | str
"""A file, a BEIR folder, or an id of ir_datasets, written `irds:scifact/test`."""

_CORPUS: dict[str, Callable[[Any], Iterator[Document]]] = {
    "beir": beir.read_corpus,
    "car": car.read_corpus,
    "irds": irds.read_corpus,
    "msmarco": msmarco.read_corpus,
    "pyserini": pyserini.read_corpus,
}
_QUERIES: dict[str, Callable[[Any], Iterator[Query]]] = {
    "beir": beir.read_queries,
    "car": car.read_queries,
    "irds": irds.read_queries,
    "msmarco": msmarco.read_queries,
    "trec": trec.read_queries,
}
_QRELS: dict[str, Callable[[Any], dict[str, dict[str, int]]]] = {
    "beir": beir.read_qrels,
    "car": trec.read_qrels,
    "irds": irds.read_qrels,
    "msmarco": trec.read_qrels,
    "trec": trec.read_qrels,
}
_RUN: dict[str, Callable[[Any], Iterator[Ranking]]] = {
    "car": trec.read_run,
    "irds": irds.read_run,
    "lists": lists.read_run,
    "msmarco": msmarco.read_run,
    "trec": trec.read_run,
}
_CANDIDATES: dict[str, Callable[[Any], Iterator[Pair]]] = {"msmarco": msmarco.read_candidates}
_TRIPLES: dict[str, Callable[[Any], Iterator[msmarco.IdTriple | msmarco.TextTriple]]] = {
    "irds": irds.read_triples,
    "msmarco-ids": msmarco.read_id_triples,
    "msmarco-texts": msmarco.read_text_triples,
}

_CORPUS_LINES = {"beir": beir.corpus_lines, "msmarco": msmarco.corpus_lines}
_QUERY_LINES = {
    "beir": beir.query_lines,
    "msmarco": msmarco.query_lines,
    "trec": trec.topic_lines,
}
_QRELS_LINES = {"beir": beir.qrels_lines, "msmarco": trec.qrels_lines, "trec": trec.qrels_lines}

_RUNS_TO_WRITE = ("msmarco", "trec")
_RANKS_ONLY = ("lists", "msmarco")


def read_corpus(source: Source, format: str = "auto") -> Iterator[Document]:
    """The documents. Ids that come twice are found by the corpus store, not here."""
    return _reader("corpus", _CORPUS, source, format)


def corpus_file(source: Source, format: str = "auto") -> Path | None:
    """The file whose n-th line is the n-th document; None where documents are no lines."""
    name = from_content(source, "corpus", _CORPUS) if format == "auto" else format
    return beir.part(Path(source), "corpus") if name in ("beir", "msmarco", "pyserini") else None


def read_queries(source: Source, format: str = "auto") -> Iterator[Query]:
    """The queries, no id twice, with their type where the data has it."""
    return _reader("queries", _QUERIES, source, format)


def read_qrels(source: Source, format: str = "auto") -> dict[str, dict[str, int]]:
    """The judgments: query id → document id → grade."""
    return _reader("qrels", _QRELS, source, format)


def read_run(source: Source, format: str = "auto") -> Iterator[Ranking]:
    """The rankings, each as soon as the lines of its query end; ranked as trec_eval ranks."""
    return _reader("run", _RUN, source, format)


def run_tag(source: Source, format: str = "auto") -> str | None:
    """The tag of a TREC run, which names the system that made it; None where there is none."""
    name = from_content(source, "run", _RUN) if format == "auto" else format
    return trec.run_tag(Path(source)) if name in ("car", "trec") else None


def has_scores(source: Source, format: str = "auto") -> bool:
    """Whether a run has scores: MS MARCO's runs and candidate lists have ranks alone."""
    name = from_content(source, "run", _RUN) if format == "auto" else format
    return name not in _RANKS_ONLY


def will_have_scores(path: Path | str) -> bool:
    """Whether `write_run` keeps scores in a file of this name.

    Raises UnknownFormat, as that does, where the name says no format.
    """
    return from_name(Path(path), "run", _RUNS_TO_WRITE) not in _RANKS_ONLY


def read_candidates(source: Source, format: str = "auto") -> Iterator[Pair]:
    """Queries with a candidate each, texts and all, as MS MARCO's top1000 files have them."""
    return _reader("candidates", _CANDIDATES, source, format)


def read_triples(
    source: Source, format: str = "auto"
) -> Iterator[msmarco.IdTriple | msmarco.TextTriple]:
    """Training triples, all of one class: by ids or by texts."""
    return _reader("triples", _TRIPLES, source, format)


def write_corpus(path: Path | str, documents: Iterable[Document], format: str = "auto") -> None:
    """Write the documents, all or nothing; `auto` goes by the name of the file."""
    lines_of = _writer("corpus", _CORPUS_LINES, path, format)
    write_lines(Path(path), lines_of(_some(documents)))


def write_queries(path: Path | str, queries: Iterable[Query], format: str = "auto") -> None:
    """Write the queries; likewise."""
    lines_of = _writer("queries", _QUERY_LINES, path, format)
    each = _distinct(_some(queries), attrgetter("id"))
    write_lines(Path(path), lines_of(each))


def write_qrels(path: Path | str, qrels: Qrels, format: str = "auto") -> None:
    """Write the judgments; likewise. A query without any leaves no trace.

    >>> import secondlook as sl
    >>> sl.write_qrels("judged.tsv", {"q1": {"d1": 1}})
    >>> sl.load_qrels("judged.tsv")
    {'q1': {'d1': 1}}
    """
    lines_of = _writer("qrels", _QRELS_LINES, path, format)
    _some(filter(None, qrels.values()))
    write_lines(Path(path), lines_of(qrels))


def write_run(
    path: Path | str, ranked: Iterable[Ranking], format: str = "auto", tag: str = "secondlook"
) -> None:
    """Write the rankings; likewise. A query without hits leaves no trace.

    `tag` is the last column of a TREC run: the name of the system that made it.
    """
    run_lines: dict[str, Callable[[Iterable[Ranking]], Iterator[str]]] = {
        "msmarco": msmarco.run_lines,
        "trec": lambda rankings: trec.run_lines(rankings, tag),
    }
    each = _distinct(ranked, attrgetter("query_id"))
    write_lines(Path(path), _writer("run", run_lines, path, format)(each))


def _reader(kind: str, readers: Mapping[str, Callable[[Any], T]], source: Source, name: str) -> T:
    if name == "auto":
        name = from_content(source, kind, readers)
    if name not in readers:
        raise UnknownName(f"{kind} format", name, ["auto", *readers])
    return readers[name](str(source) if name == "irds" else Path(source))


def _writer(kind: str, writers: Mapping[str, T], path: Path | str, name: str) -> T:
    if name == "auto":
        name = from_name(Path(path), kind, writers)
    if name not in writers:
        raise UnknownName(f"{kind} format to write", name, ["auto", *writers])
    return writers[name]


def _distinct(items: Iterable[T], id_of: Callable[[T], str]) -> Iterator[T]:
    """The items, each query once: no reader would take a second."""
    seen: set[str] = set()
    for item in items:
        query_id = id_of(item)
        if query_id in seen:
            raise Unwritable(f"query {query_id!r} comes twice, and would not be read back")
        seen.add(query_id)
        yield item


def _some(items: Iterable[T]) -> Iterator[T]:
    """The items, of which there is at least one: no reader would take the empty file."""
    rest = iter(items)
    for first in rest:
        return chain([first], rest)
    raise Unwritable("there is nothing to write; is the source the one you meant?")
