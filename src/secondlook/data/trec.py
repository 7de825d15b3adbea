"""TREC: topics in their three forms, judgments, runs."""

from __future__ import annotations

import html
import re
from itertools import chain
from typing import TYPE_CHECKING, cast
from xml.etree.ElementTree import ParseError, XMLPullParser

from secondlook.data.columns import integer, real, shown, spaced, word
from secondlook.data.lines import lines
from secondlook.data.msmarco import tsv_queries
from secondlook.data.rows import distinct, judgments, rankings
from secondlook.errors import MalformedInput, Unwritable
from secondlook.types import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from xml.etree.ElementTree import Element

    from secondlook.data.rows import GradeRow, HitRow
    from secondlook.types import Qrels, Ranking

    NumberedLines = Iterable[tuple[int, str]]
    NumberedQueries = Iterator[tuple[Query, int | None]]

LARGEST_SCORE = 3.4028234663852886e38  # of single precision, in which trec_eval keeps scores

_FIELD = re.compile(
    r"(?:^[ \t]*<(/?)([a-z]+)|<(/?)(num|title|query|desc|narr)\b)[^<>]*>",
    re.IGNORECASE | re.MULTILINE,
)
"""A tag of a topic: one that begins a line, or has the name of a field. Others are the query's."""
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PRESERVE = "{http://www.w3.org/XML/1998/namespace}space"


def read_queries(path: Path) -> Iterator[Query]:
    """Topics in the classic form (`<top>`, `<num>`, `<title>`), in XML, or as `qid<TAB>text`.

    The query is the topic's `title`, else its `query` (in XML else its bare text), as
    the field's baselines take it; description and narrative are left out. White space in a
    title is folded, unless the XML says `xml:space="preserve"`.
    """
    return distinct(_topics(path), path)


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """`qid 0 docid grade`; the second column is not looked at."""
    return judgments(_grades(path), path)


def read_run(path: Path) -> Iterator[Ranking]:
    """`qid Q0 docid rank score tag`, the lines of a query together.

    As in trec_eval the order comes from the scores, equal ones by document id, descending; the
    rank, `Q0` and the tag are not looked at. A run without any line is a run that found nothing.
    """
    return rankings(_hits(path), path)


def topic_lines(queries: Iterable[Query]) -> Iterator[str]:
    """The queries as topics in XML, which has no place for types."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield "<topics>"
    for query in queries:
        if query.type is not None:
            raise Unwritable(
                f"query {query.id!r} has the type {query.type!r}, for which topics have no place; "
                "write it as beir"
            )
        number = _xml(word(query.id, "query id"))
        kept = "" if query.text == _folded(query.text) else ' xml:space="preserve"'
        title = _xml(query.text)
        yield f'<topic number="{number}"><title{kept}>{title}</title></topic>'
    yield "</topics>"


def qrels_lines(qrels: Qrels) -> Iterator[str]:
    """The judgments as `qid 0 docid grade`."""
    for query_id, graded in qrels.items():
        qid = word(query_id, "query id")
        for doc_id, grade in graded.items():
            yield f"{qid} 0 {word(doc_id, 'document id')} {grade:d}"


def run_lines(ranked: Iterable[Ranking], tag: str) -> Iterator[str]:
    """The rankings as `qid Q0 docid rank score tag`.

    Scores are written so that they read back to the last bit of single precision. A ranking
    without hits leaves no line: a run cannot say that a query found nothing.
    """
    word(tag, "tag")
    for ranking in ranked:
        qid = word(ranking.query_id, "query id")
        for rank, hit in enumerate(ranking.hits, start=1):
            score = float(hit.score)
            if not -LARGEST_SCORE <= score <= LARGEST_SCORE:
                raise Unwritable(
                    f"document {hit.doc_id!r} has the score {score} for query {qid!r}, which "
                    "trec_eval could not rank"
                )
            yield f"{qid} Q0 {word(hit.doc_id, 'document id')} {rank} {score!r} {tag}"


def run_tag(path: Path) -> str | None:
    """The last column of the first line; None where the run is of another format."""
    for _, line in lines(path, may_be_empty=True):
        columns = line.split()
        return columns[-1] if len(columns) == 6 else None
    return None


def _grades(path: Path) -> Iterator[GradeRow]:
    for number, columns in spaced(path, "qid 0 docid grade", may_be_empty=False):
        query_id, _, doc_id, grade = columns
        yield query_id, doc_id, integer(path, number, "grade", grade), number


def _hits(path: Path) -> Iterator[HitRow]:
    for number, columns in spaced(path, "qid Q0 docid rank score tag", may_be_empty=True):
        query_id, _, doc_id, _, score, _ = columns
        yield query_id, doc_id, real(path, number, "score", score), number


def _topics(path: Path) -> NumberedQueries:
    numbered = lines(path, may_be_blank=True)
    leading = []
    for leading_line in numbered:
        leading.append(leading_line)
        if leading_line[1].strip():
            break
    else:
        raise MalformedInput(path, None, "holds no topic")
    whole = chain(leading, numbered)
    start = leading[-1][1].lstrip().lower()
    if start.startswith("<top>"):
        return _classic_topics(path, whole)
    if start.startswith("<"):
        return _xml_topics(path, whole)
    return tsv_queries(path, chain(leading[-1:], numbered))


def _classic_topics(path: Path, numbered: NumberedLines) -> NumberedQueries:
    begun = 0
    held: list[str] = []
    for number, line in numbered:
        mark = line.strip().lower()
        if begun and mark == "</top>":
            yield _classic_topic(path, begun, "\n".join(held)), begun
            begun, held = 0, []
        elif begun:
            held.append(line)
        elif mark == "<top>":
            begun = number
        elif mark:
            raise MalformedInput(path, number, f"stands outside of <top> … </top>: {shown(line)}")
    if begun:
        raise MalformedInput(path, begun, "begins a topic that no </top> ends")


def _classic_topic(path: Path, begun: int, text: str) -> Query:
    """Fields run from their tag to the next one; end tags were rarely written."""
    fields: dict[str, str] = {}
    marks = list(_FIELD.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if not (mark[1] or mark[3]):
            end = following.start() if following else len(text)
            fields.setdefault((mark[2] or mark[4]).lower(), _folded(text[mark.end() : end]))
    title = fields.get("title", fields.get("query"))
    return _query(
        path,
        begun,
        fields.get("num", "").removeprefix("Number:").lstrip(),
        title and title.removeprefix("Topic:").lstrip(),
    )


def _xml_topics(path: Path, numbered: NumberedLines) -> NumberedQueries:
    # expat itself bounds what entities may blow up to, and nothing outside is fetched.
    parser: XMLPullParser[Element] = XMLPullParser(["end"])
    number = 0
    any_topic = False
    try:
        for number, line in numbered:
            parser.feed(line + "\n")
            for _, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
                if element.tag.lower() in ("topic", "top"):
                    any_topic = True
                    yield _xml_topic(path, number, element), number
                    element.clear()
        parser.close()
    except ParseError as error:
        raise MalformedInput(path, number, f"is not well-formed XML ({error})") from error
    if not any_topic:
        raise MalformedInput(path, None, "holds no <topic>")


def _xml_topic(path: Path, number: int, topic: Element) -> Query:
    fields = {child.tag.lower(): child for child in reversed(topic)}
    query_id = topic.get("number") or topic.get("id")
    for name in ("num", "number", "identifier"):
        if query_id is None and name in fields:
            query_id = _folded(fields[name].text or "").removeprefix("Number:").lstrip()
    named = fields.get("title", fields.get("query", None if fields else topic))
    if named is None:
        return _query(path, number, query_id, None)
    text = "".join(named.itertext())
    kept = named.get(_PRESERVE) == "preserve"
    return _query(path, number, query_id, text if kept else _folded(text))


def _query(path: Path, number: int, query_id: str | None, text: str | None) -> Query:
    if not query_id:
        raise MalformedInput(path, number, "the topic has no number")
    if text is None:
        raise MalformedInput(path, number, f"topic {query_id!r} has neither title nor query")
    return Query(query_id, text)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _xml(text: str) -> str:
    """The text as XML spells it; a bare carriage return would be read as a line end."""
    if found := _NOT_IN_XML.search(text):
        raise Unwritable(
            f"{shown(text)} holds {found.group()!r}, which XML cannot hold; write it as beir"
        )
    return html.escape(text).replace("\r", "&#13;")
