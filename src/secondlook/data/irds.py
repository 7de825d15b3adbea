"""Any data set that ir_datasets knows by an id; it downloads and keeps what it can."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from secondlook.data.msmarco import IdTriple
from secondlook.data.rows import distinct, judgments, rankings
from secondlook.errors import MalformedInput, MissingExtra, UnknownFormat, UnknownName
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.types import Ranking

PREFIX = "irds:"

ANSWER_TYPES = frozenset({"description", "entity", "location", "numeric", "person"})
"""MS MARCO's. Elsewhere ir_datasets' field `type` means other things: faceted, diagnosis, …"""


def read_corpus(name: str) -> Iterator[Document]:
    """The documents; the title apart where the set has it apart."""
    for doc in _each(name, "docs"):
        text = getattr(doc, "text", None)
        if isinstance(text, str):
            yield Document(doc.doc_id, text, getattr(doc, "title", None) or "")
        else:  # made of other fields (abstract, body, …): ir_datasets says how they join
            yield Document(doc.doc_id, doc.default_text())


def read_queries(name: str) -> Iterator[Query]:
    """The queries as ir_datasets words them by default, with MS MARCO's answer types."""
    return distinct(((_query(query), None) for query in _each(name, "queries")), name)


def read_qrels(name: str) -> dict[str, dict[str, int]]:
    """The judgments."""
    rows = ((row.query_id, row.doc_id, row.relevance, None) for row in _each(name, "qrels"))
    return judgments(rows, name)


def read_run(name: str) -> Iterator[Ranking]:
    """The first-stage run that comes with some sets (`scoreddocs`), in any order of its rows.

    Candidates without scores, as MS MARCO's top 1000, all have the score 0 from ir_datasets: there
    is something to re-rank, but their own order says nothing.
    """
    hits: dict[str, tuple[list[str], array[float]]] = {}
    for row in _each(name, "scoreddocs"):
        doc_ids, scores = hits.setdefault(row.query_id, ([], array("d")))
        doc_ids.append(row.doc_id)
        scores.append(row.score)
    rows = (
        (query_id, doc_id, score, None)
        for query_id, (doc_ids, scores) in hits.items()
        for doc_id, score in zip(doc_ids, scores, strict=True)
    )
    return rankings(rows, name)


def read_triples(name: str) -> Iterator[IdTriple]:
    """The training triples that come with some sets (`docpairs`)."""
    for row in _each(name, "docpairs"):
        yield IdTriple(row.query_id, row.doc_id_a, row.doc_id_b)


def _query(query: Any) -> Query:  # noqa: ANN401 - each set has a class of its own
    kind = str(getattr(query, "type", "")).lower()
    return Query(query.query_id, query.default_text(), kind if kind in ANSWER_TYPES else None)


def _each(name: str, entity: str) -> Iterator[Any]:
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtra("datasets", f"reading {name} through ir_datasets") from error
    dataset_id = name.removeprefix(PREFIX)
    try:
        dataset = ir_datasets.load(dataset_id)
    except KeyError as error:
        root = dataset_id.split("/")[0]
        known = [known for known in ir_datasets.registry if known.split("/")[0] == root]
        roots = {known.split("/")[0] for known in ir_datasets.registry}
        raise UnknownName("data set of ir_datasets", dataset_id, known or roots) from error
    if not dataset.has(entity):
        has = [e.value for e in ir_datasets.EntityType if dataset.has(e)]
        raise UnknownFormat(f"{name} has no {entity}; ir_datasets lists: {', '.join(has)}")
    try:
        yield from getattr(dataset, f"{entity}_iter")()
    except (OSError, RuntimeError, ImportError) as error:
        raise MalformedInput(name, None, f"ir_datasets could not give it: {error}") from error
