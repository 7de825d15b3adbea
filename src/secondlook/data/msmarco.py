"""MS MARCO's tab-separated files: collection, queries, top1000, triples, runs.

Its judgments are TREC's, parted by tabs: `trec.read_qrels` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from secondlook.data.columns import integer, tab_field, tab_id, tabbed
from secondlook.data.lines import lines
from secondlook.data.rows import distinct, rankings
from secondlook.errors import MalformedInput, Unwritable
from secondlook.types import Document, Pair, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from secondlook.data.rows import HitRow

_OF_DOCUMENTS = 4  # docid, url, title, body


@dataclass(frozen=True, slots=True)
class IdTriple:
    """A query, a relevant document and one that is not, by their ids."""

    query_id: str
    positive_id: str
    negative_id: str


@dataclass(frozen=True, slots=True)
class TextTriple:
    """The same, written out."""

    query: str
    positive: str
    negative: str


def read_corpus(path: Path) -> Iterator[Document]:
    """`collection.tsv`: pid, passage; or `msmarco-docs.tsv`: docid, url, title, body.

    The first line tells which. That no id comes twice is for the corpus store to see.
    """
    numbered = lines(path)
    first = next(numbered)
    every = chain([first], numbered)
    if are_documents(first[1]):
        for _, (docid, _, title, body) in tabbed(path, every, "docid url title body", 1):
            yield Document(docid, body, title)
        return
    for _, (pid, passage) in tabbed(path, every, "pid passage", 1):
        yield Document(pid, passage)


def are_documents(line: str) -> bool:
    """Whether a line is of `msmarco-docs.tsv`: four columns, the second of them an address."""
    columns = line.split("\t")
    return len(columns) == _OF_DOCUMENTS and columns[1].startswith(("http://", "https://"))


def read_queries(path: Path) -> Iterator[Query]:
    """`queries.tsv`: qid, query; the tab-separated form of TREC's topics as well."""
    return distinct(tsv_queries(path, lines(path)), path)


def tsv_queries(
    path: Path, numbered: Iterable[tuple[int, str]]
) -> Iterator[tuple[Query, int | None]]:
    """The queries of such lines, and where they stand."""
    for number, (qid, text) in tabbed(path, numbered, "qid query", 1):
        yield Query(qid, text), number


def read_candidates(path: Path) -> Iterator[Pair]:
    """`top1000`: qid, pid, query, passage; in the file's order, which is by no means by query."""
    for _, (qid, pid, query, passage) in tabbed(path, lines(path), "qid pid query passage", 2):
        yield Query(qid, query), Document(pid, passage)


def read_id_triples(path: Path) -> Iterator[IdTriple]:
    """`qidpidtriples`: qid, the pid of a relevant passage, the pid of one that is not."""
    for _, columns in tabbed(path, lines(path), "qid positive-pid negative-pid", 3):
        yield IdTriple(*columns)


def read_text_triples(path: Path) -> Iterator[TextTriple]:
    """`triples`: query, relevant passage, passage that is not, as texts."""
    for _, columns in tabbed(path, lines(path), "query positive negative", 0):
        yield TextTriple(*columns)


def read_run(path: Path) -> Iterator[Ranking]:
    """A run `qid pid rank`: the score is 1/rank, so that the ranks give the order."""
    return rankings(_hits(path), path)


def corpus_lines(documents: Iterable[Document]) -> Iterator[str]:
    """The documents as lines of `collection.tsv`, which has no place for titles."""
    for document in documents:
        if document.title:
            raise Unwritable(
                f"document {document.id!r} has a title, for which MS MARCO's collection has no "
                "place; write it as beir"
            )
        if document.queries or document.weights is not None:
            raise Unwritable(
                f"document {document.id!r} has queries or weights for the first stage, for which "
                "MS MARCO's collection has no place; write it as beir"
            )
        text = tab_field(document.text, f"the text of document {document.id!r}")
        yield f"{tab_id(document.id, 'document id')}\t{text}"


def query_lines(queries: Iterable[Query]) -> Iterator[str]:
    """The queries as lines of `queries.tsv`, which has no place for types."""
    for query in queries:
        if query.type is not None:
            raise Unwritable(
                f"query {query.id!r} has the type {query.type!r}, for which this format has no "
                "place; write it as beir"
            )
        text = tab_field(query.text, f"the text of query {query.id!r}")
        yield f"{tab_id(query.id, 'query id')}\t{text}"


def run_lines(ranked: Iterable[Ranking]) -> Iterator[str]:
    """The rankings as lines `qid pid rank`: the order is kept, the scores are not."""
    for ranking in ranked:
        qid = tab_id(ranking.query_id, "query id")
        for rank, hit in enumerate(ranking.hits, start=1):
            yield f"{qid}\t{tab_id(hit.doc_id, 'document id')}\t{rank}"


def _hits(path: Path) -> Iterator[HitRow]:
    rows = tabbed(path, lines(path, may_be_empty=True), "qid pid rank", 2)
    for number, (qid, pid, written) in rows:
        rank = integer(path, number, "rank", written)
        if rank < 1:
            raise MalformedInput(path, number, f"ranks count from 1, but this is {rank}")
        yield qid, pid, 1 / rank, number
