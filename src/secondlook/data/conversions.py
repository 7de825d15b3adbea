"""Queries, judgments and runs as programs have them: objects, dicts, DataFrames or files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from secondlook.data.formats import read_qrels, read_queries, read_run
from secondlook.data.rows import distinct
from secondlook.errors import MalformedInput, SecondlookError
from secondlook.frames import column, dataframe, is_dataframe
from secondlook.types import Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from secondlook.types import Qrels

T = TypeVar("T")

Queries = str | Path | Iterable[str | Query] | Mapping[str, str] | Any
"""A file or `irds:ID`; texts, which get the ids 1, 2, …; Query objects; {query id: text}; or a
DataFrame with the columns `qid` (or `query_id`) and `query` (or `text`)."""

RunLike = str | Path | Iterable[Ranking] | Mapping[str, Mapping[str, float]] | Any
"""A run file or `irds:ID`; rankings; {query id: {document id: score}}; or a DataFrame with the
columns `qid` (or `query_id`), `docno` (or `docid`, `doc_id`) and `score`."""

QrelsLike = str | Path | Mapping[str, Mapping[str, int]] | Any
"""A file or `irds:ID`; {query id: {document id: grade}}; or a DataFrame with the columns `qid` (or
`query_id`), `docno` (or `docid`, `doc_id`) and `label` (or `relevance`, `grade`)."""

_FRAME = "the DataFrame"
_QUERY_ID = "qid", "query_id"
_DOC_ID = "docno", "docid", "doc_id"
_GRADE = "label", "relevance", "grade"


def load_queries(given: Queries, query_format: str = "auto") -> list[Query]:
    """The queries, in the order given. One text alone is given as a list of one.

    >>> import secondlook as sl
    >>> sl.load_queries(["cats land", "tide"])[1].text
    'tide'
    """
    if isinstance(given, str | Path):
        return list(read_queries(given, query_format))
    if is_dataframe(given):
        given = _texts(_ids(given), column(given, "query texts", "query", "text"))
    if isinstance(given, Mapping):
        return [Query(str(query_id), text) for query_id, text in given.items()]
    if not isinstance(given, Iterable):
        raise _unknown("queries", given)
    queries = list(given)
    if not all(isinstance(query, str | Query) for query in queries):
        raise _unknown("queries", queries)
    named = (
        query if isinstance(query, Query) else Query(str(number), query)
        for number, query in enumerate(queries, start=1)
    )
    return list(distinct(((query, None) for query in named), "the queries"))


def rankings_of(given: RunLike, run_format: str = "auto") -> Iterable[Ranking]:
    """The rankings; those of a file are read as they are needed, and can be passed over once."""
    if isinstance(given, str | Path):
        return read_run(given, run_format)
    if is_dataframe(given):
        scores = column(given, "scores", "score")
        given = _nested(_ids(given), _documents(given), map(_score, scores))
    if isinstance(given, Mapping):
        return (
            Ranking.of(query_id, (Hit(doc_id, score) for doc_id, score in hits.items()))
            for query_id, hits in _by_text("a run", given, _score).items()
        )
    if not isinstance(given, Iterable):
        raise _unknown("a run", given)
    return _only_rankings(given)


def load_qrels(given: QrelsLike, qrels_format: str = "auto") -> Qrels:
    """The judgments: query id → document id → grade.

    >>> import secondlook as sl
    >>> sl.load_qrels({"q1": {"d1": 1}})
    {'q1': {'d1': 1}}
    """
    if isinstance(given, str | Path):
        return read_qrels(given, qrels_format)
    if is_dataframe(given):
        grades = column(given, "grades", *_GRADE)
        return _nested(_ids(given), _documents(given), map(_grade, grades))
    if not isinstance(given, Mapping):
        raise _unknown("judgments", given)
    return _by_text("judgments", given, _grade)


def qrels_to_dataframe(qrels: Qrels) -> Any:  # noqa: ANN401 - pandas may not be installed
    """The judgments as a DataFrame with the columns `query_id`, `doc_id` and `relevance`.

    >>> import secondlook as sl
    >>> list(sl.qrels_to_dataframe({"q1": {"d1": 1}}).columns)
    ['query_id', 'doc_id', 'relevance']
    """
    rows = [
        {"query_id": query, "doc_id": doc_id, "relevance": grade}
        for query, judged in qrels.items()
        for doc_id, grade in judged.items()
    ]
    return dataframe(rows, ["query_id", "doc_id", "relevance"])


def _only_rankings(given: Iterable[Any]) -> Iterator[Ranking]:
    for ranking in given:
        if not isinstance(ranking, Ranking):
            raise _unknown("a run", given)
        yield ranking


def _ids(frame: Any) -> list[str]:  # noqa: ANN401 - any library's frame
    return [str(query_id) for query_id in column(frame, "query ids", *_QUERY_ID)]


def _documents(frame: Any) -> list[str]:  # noqa: ANN401 - any library's frame
    return [str(doc_id) for doc_id in column(frame, "document ids", *_DOC_ID)]


def _nested(
    queries: list[str], documents: list[str], values: Iterable[Any]
) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for query, document, value in zip(queries, documents, values, strict=True):
        kept = nested.setdefault(query, {}).setdefault(document, value)
        if kept is not value and kept != value:
            raise MalformedInput(
                _FRAME, None, f"query {query!r} has {kept} and {value} for document {document!r}"
            )
    return nested


def _texts(query_ids: list[str], texts: Iterable[Any]) -> dict[str, str]:
    """A query may stand in many rows, as in a table of results, with one text."""
    known: dict[str, str] = {}
    for query_id, text in zip(query_ids, texts, strict=True):
        if not isinstance(text, str):
            raise MalformedInput(_FRAME, None, f"query {query_id!r} has no text, but {text!r}")
        if known.setdefault(query_id, text) != text:
            raise MalformedInput(_FRAME, None, f"query {query_id!r} has more than one text")
    return known


def _by_text(
    what: str, given: Mapping[Any, Any], read: Callable[[Any], T]
) -> dict[str, dict[str, T]]:
    """Query id → document id → value, both ids as text: those of 1 and "1" are the same."""
    values: dict[str, dict[str, T]] = {}
    for query_id, of_documents in given.items():
        if not isinstance(of_documents, Mapping):
            raise _unknown(what, of_documents)
        if str(query_id) in values:
            raise MalformedInput(what, None, f"query {str(query_id)!r} is there twice")
        values[str(query_id)] = {str(doc_id): read(v) for doc_id, v in of_documents.items()}
    return values


def _score(given: Any) -> float:  # noqa: ANN401 - a number of any library
    try:
        return float(given)
    except (TypeError, ValueError):
        raise MalformedInput("a run", None, f"a score must be a number, not {given!r}") from None


def _grade(given: Any) -> int:  # noqa: ANN401 - a number of any library
    try:
        grade = float(given)
    except (TypeError, ValueError):
        grade = nan
    if not grade.is_integer():  # nor is NaN
        raise MalformedInput("the judgments", None, f"a grade must be a whole number, not {given}")
    return int(grade)


def _unknown(what: str, given: object) -> SecondlookError:
    kinds = {
        "queries": "a file, texts, Query objects, {query id: text} or a DataFrame",
        "a run": "a file, Ranking objects, {query id: {document id: score}} or a DataFrame",
        "judgments": "a file, {query id: {document id: grade}} or a DataFrame",
    }
    return SecondlookError(f"{what} can be {kinds[what]}, not {type(given).__name__}")
