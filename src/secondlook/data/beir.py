"""BEIR: `corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv` with a header, and folders of these."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from secondlook.data.columns import integer, tab_id, tabbed
from secondlook.data.lines import lines
from secondlook.data.objects import objects
from secondlook.data.rows import distinct, judgments
from secondlook.errors import MalformedInput, UnknownFormat, Unwritable
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from secondlook.data.rows import GradeRow
    from secondlook.types import Qrels

HEADER = "query-id\tcorpus-id\tscore"
MOST_WEIGHT = 1_000_000
"""What the weights of a document may come to; DeepCT's are at most 100 a word."""
_EXAMPLE = '{"_id": …, "text": …}'


def read_corpus(path: Path) -> Iterator[Document]:
    """`{"_id", "title", "text"}` per line, the title optional; from a file or a BEIR folder.

    What only the first stage goes by stands beside them, where there is any: `"queries": ["…"]`
    and `"weights": {"word": 31}`.

    Ids are not compared with one another, which would need them all in memory: the corpus store
    refuses an id that comes twice.
    """
    path = part(path, "corpus")
    for number, record in objects(path, _EXAMPLE):
        title = record.get("title")
        yield Document(
            _string(path, number, record, "_id"),
            _string(path, number, record, "text"),
            "" if title is None else _string(path, number, record, "title"),
            _predicted(path, number, record.get("queries")),
            _weights(path, number, record.get("weights")),
        )


def read_queries(path: Path) -> Iterator[Query]:
    """`{"_id", "text", "metadata"}` per line; `metadata.type`, lower-cased, is the query's type."""
    path = part(path, "queries")
    return distinct(_queries(path), path)


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """`query-id`, `corpus-id`, `score` under that header."""
    path = part(path, "qrels")
    return judgments(_grades(path), path)


def corpus_lines(documents: Iterable[Document]) -> Iterator[str]:
    """The documents as lines of `corpus.jsonl`."""
    for document in documents:
        _refuse_no_id(document.id)
        record: dict[str, Any] = {
            "_id": document.id,
            "title": document.title,
            "text": document.text,
        }
        if document.queries:
            record["queries"] = document.queries
        if document.weights is not None:
            record["weights"] = dict(document.weights)
        yield json.dumps(record, ensure_ascii=False)


def query_lines(queries: Iterable[Query]) -> Iterator[str]:
    """The queries as lines of `queries.jsonl`."""
    for query in queries:
        _refuse_no_id(query.id)
        metadata = {} if query.type is None else {"type": query.type}
        record = {"_id": query.id, "text": query.text, "metadata": metadata}
        yield json.dumps(record, ensure_ascii=False)


def qrels_lines(qrels: Qrels) -> Iterator[str]:
    """The judgments under the header."""
    yield HEADER
    for query_id, graded in qrels.items():
        qid = tab_id(query_id, "query id")
        for doc_id, grade in graded.items():
            yield f"{qid}\t{tab_id(doc_id, 'document id')}\t{grade:d}"


def part(path: Path, kind: str) -> Path:
    """The file of a BEIR folder that holds the corpus, the queries or the judgments."""
    if not path.is_dir():
        return path
    if kind != "qrels":
        found = [p for end in ("", ".gz", ".zst") if (p := path / f"{kind}.jsonl{end}").is_file()]
    else:
        folder = path if path.name == "qrels" else path / "qrels"
        found = sorted(p for end in ("", ".gz", ".zst") for p in folder.glob(f"*.tsv{end}"))
    if len(found) == 1:
        return found[0]
    if not found:
        wanted = "qrels/*.tsv" if kind == "qrels" else f"{kind}.jsonl (or .gz, .zst)"
        raise UnknownFormat(f"{path} is a folder without {wanted}; name the file itself")
    raise UnknownFormat(
        f"{path} holds more than one: {', '.join(str(p.relative_to(path)) for p in found)}; "
        f"name the one you mean, as in {found[0]}"
    )


def _refuse_no_id(given: str) -> None:
    if not given:
        raise Unwritable("an id is empty, and would not be read back; give it one")


def _string(path: Path, number: int, record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if type(value) is str and (value or key != "_id"):
        return value
    if key not in record:
        raise MalformedInput(path, number, f'has no "{key}"')
    wanted = "a text that is not empty" if key == "_id" else "a text"
    raise MalformedInput(path, number, f'"{key}" must be {wanted}, but is {json.dumps(value)[:40]}')


def _predicted(path: Path, number: int, queries: object) -> tuple[str, ...]:
    if queries is None:
        return ()
    if type(queries) is not list or not all(type(query) is str for query in queries):
        raise MalformedInput(path, number, '"queries" must be a list of texts')
    return tuple(queries)


def _weights(path: Path, number: int, weights: object) -> dict[str, int] | None:
    if weights is None:
        return None
    if type(weights) is not dict or not all(type(n) is int and n > 0 for n in weights.values()):
        raise MalformedInput(
            path, number, '"weights" must be words with whole numbers above 0, as {"sea": 31}'
        )
    if (total := sum(weights.values())) > MOST_WEIGHT:
        raise MalformedInput(
            path,
            number,
            f'"weights" come to {total:,}, more than {MOST_WEIGHT:,}, and an index holds each word '
            "as often as its weight says; use smaller numbers, as `weigh` does",
        )
    return weights


def _queries(path: Path) -> Iterator[tuple[Query, int]]:
    for number, record in objects(path, _EXAMPLE):
        metadata = record.get("metadata")
        if metadata is not None and type(metadata) is not dict:
            raise MalformedInput(path, number, '"metadata" must be an object')
        kind = metadata.get("type") if metadata else None
        if kind is not None and type(kind) is not str:
            raise MalformedInput(path, number, '"metadata.type" must be a text, as "numeric"')
        query = Query(
            _string(path, number, record, "_id"),
            _string(path, number, record, "text"),
            kind.lower() if kind else None,
        )
        yield query, number


def _grades(path: Path) -> Iterator[GradeRow]:
    rows = lines(path)
    number, header = next(rows)
    if header != HEADER:
        raise MalformedInput(
            path,
            number,
            f"must be the header {HEADER!r} of a BEIR file; judgments without one, "
            "`query 0 document grade`, are of --format trec",
        )
    for number, (query_id, doc_id, score) in tabbed(path, rows, "query-id corpus-id score", 2):
        yield query_id, doc_id, integer(path, number, "score", score), number
