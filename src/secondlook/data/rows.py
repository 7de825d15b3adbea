"""What the rows of any format become: rankings, judgments, queries with an id of their own."""

from __future__ import annotations

from array import array
from itertools import groupby
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING

from secondlook.errors import MalformedInput
from secondlook.types import Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

HitRow = tuple[str, str, float, int | None]
"""Query id, document id, score, and the line it stands on where there are lines."""

GradeRow = tuple[str, str, int, int | None]
"""Query id, document id, grade, line."""


def rankings(rows: Iterable[HitRow], source: Path | str) -> Iterator[Ranking]:
    """One ranking per query, as soon as its rows end; holds one query's hits at a time.

    Scores are rounded to single precision: trec_eval keeps them in C floats, so that two which
    differ only beyond that are a tie to it (pytrec_eval puts 'b' at 1.0 above 'a' at 1.0 + 1e-12).
    With the same rounding and the same order of ties our ranks are trec_eval's ranks.
    """
    ended: set[str] = set()
    for query_id, group in groupby(rows, key=itemgetter(0)):
        _, doc_ids, scores, numbers = zip(*group, strict=True)
        if query_id in ended:
            raise MalformedInput(
                source,
                numbers[0],
                f"query {query_id!r} comes back after other queries; bring the lines of a query "
                "together: sort --stable --key=1,1 RUN > SORTED",
            )
        ended.add(query_id)
        singles = array("f", scores)  # what a single cannot hold becomes infinite
        if not all(map(isfinite, singles)):
            odd = next(i for i, score in enumerate(singles) if not isfinite(score))
            raise MalformedInput(
                source,
                numbers[odd],
                f"the score {scores[odd]} is not a finite number of single precision, and cannot "
                "be ranked; mend the run",
            )
        if len(set(doc_ids)) < len(doc_ids):
            first = {doc_id: i for i, doc_id in reversed(list(enumerate(doc_ids)))}
            again = next(i for i, doc_id in enumerate(doc_ids) if first[doc_id] < i)
            raise MalformedInput(
                source,
                numbers[again],
                f"document {doc_ids[again]!r} stands twice for query {query_id!r}; keep its best",
            )
        ordered = sorted(zip(singles, doc_ids, strict=True), reverse=True)
        yield Ranking(query_id, tuple(Hit(doc_id, score) for score, doc_id in ordered))


def judgments(rows: Iterable[GradeRow], source: Path | str) -> dict[str, dict[str, int]]:
    """The grades by query and document.

    A judgment that stands twice with the same grade is taken once; two grades for one pair
    contradict each other and are refused.
    """
    qrels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, grade, number in rows:
        earlier = qrels.setdefault(query_id, {}).setdefault(doc_id, grade)
        if earlier != grade:
            raise MalformedInput(
                source,
                number,
                f"document {doc_id!r} has grade {grade} for query {query_id!r}, but {earlier} "
                "above; keep one of them",
            )
    if not qrels:
        raise MalformedInput(source, None, "holds no judgment")
    return qrels


def distinct(queries: Iterable[tuple[Query, int | None]], source: Path | str) -> Iterator[Query]:
    """The queries, each id once. Their ids are kept: some 100 MB for a million queries."""
    seen: set[str] = set()
    for query, number in queries:
        if query.id in seen:
            raise MalformedInput(
                source, number, f"query id {query.id!r} stands above already; ids must differ"
            )
        seen.add(query.id)
        yield query
