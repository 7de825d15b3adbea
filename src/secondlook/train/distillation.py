"""What a student learns from a teacher, of queries that nobody judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from math import ceil
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from secondlook.data.near_duplicates import clusters
from secondlook.errors import SecondlookError
from secondlook.evaluate.agreement import TOP
from secondlook.rank.present import fetch_present
from secondlook.train.groups import UNJUDGED, Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from secondlook.types import Corpus, Query, Ranking

_HELD_OUT = 0.2
_MOST_VALIDATED = 40
_MOST_TESTED = 100
_SPREAD = 2.0
"""The standard deviation, within a query, of the teacher's scores over the temperature: of ten
documents the best then has about half of the probability, and the others still count."""


@dataclass(frozen=True, slots=True)
class QuerySplit:
    """Queries with no text in common, near-duplicates included."""

    train: list[Query]
    validation: list[Query]
    """To choose the best weights."""
    test: list[Query]
    """To measure how far student and teacher agree."""

    def parts(self) -> dict[str, list[Query]]:
        """By name."""
        return {"train": self.train, "dev": self.validation, "test": self.test}


def split_queries(queries: Sequence[Query]) -> QuerySplit:
    """A fifth of the queries is held out, at most 40 for validation and 100 to test.

    Equal and nearly equal texts are one query. The split depends on the queries' ids alone. Raises
    SecondlookError where there are too few.
    """
    alike = clusters({query.id: query.text for query in queries})
    distinct = [query for query in queries if alike[query.id] == query.id and query.text.strip()]
    order = sorted(distinct, key=lambda query: blake2b(f"held out\0{query.id}".encode()).digest())
    held_out = min(round(len(order) * _HELD_OUT), _MOST_VALIDATED + _MOST_TESTED)
    validated = min(ceil(held_out * 0.3), _MOST_VALIDATED)
    if validated == held_out:
        raise SecondlookError(
            f"{len(distinct)} different queries are too few to learn from and to hold some out; "
            "give ten at least, better some hundreds"
        )
    return QuerySplit(order[held_out:], order[:validated], order[validated:held_out])


def hard_candidates(pool: Ranking, own: Ranking, depth: int) -> list[str]:
    """The documents of one query that the teacher scores, `depth` at most, best first as in `pool`.

    Half of them are those that the student itself ranks highest (`own`), where its errors are; the
    other half is drawn from the rest of the first stage's `pool`, where a served student works too.
    """
    first = [hit.doc_id for hit in own.hits[: ceil(depth / 2)]]
    rest = [hit.doc_id for hit in pool.hits if hit.doc_id not in set(first)]
    drawn = sorted(rest, key=lambda doc: blake2b(f"{pool.query_id}\0{doc}".encode()).digest())
    chosen = {*first, *drawn[: depth - len(first)]}
    return [hit.doc_id for hit in pool.hits if hit.doc_id in chosen]


def unlabelled_groups(
    queries: Sequence[Query],
    pool: Iterable[Ranking],
    own: Iterable[Ranking],
    corpus: Corpus,
    k: int,
) -> Iterator[Group]:
    """Each query with its candidates, none of them judged; queries with less than two are left out.

    The rankings of both are by query, in any order.
    """
    by_student = {ranking.query_id: ranking for ranking in own}
    by_engine = {ranking.query_id: ranking for ranking in pool}
    for query in queries:
        if query.id not in by_engine or query.id not in by_student:
            continue
        ranks = {hit.doc_id: rank for rank, hit in enumerate(by_engine[query.id].hits, start=1)}
        chosen = hard_candidates(by_engine[query.id], by_student[query.id], k)
        found = fetch_present(corpus, chosen)  # some may have left a live index since
        documents = tuple(found[doc_id] for doc_id in chosen if doc_id in found)
        if len(documents) > 1:
            labels = (UNJUDGED,) * len(documents)
            yield Group(
                query, documents, labels, tuple(ranks[document.id] for document in documents)
            )


def labelled_by_teacher(group: Group) -> Group:
    """The group with the teacher's order as its labels: its best is the positive.

    The grades from 10 down to 1 are those of the teacher's ten best, so that the nDCG of a ranking
    says how near it is to the teacher's.
    """
    assert group.teacher is not None
    order = sorted(range(len(group.documents)), key=lambda at: -group.teacher[at])  # type: ignore[index]
    labels, grades = [UNJUDGED] * len(order), [0] * len(order)
    labels[order[0]] = 1
    for rank, at in enumerate(order[:TOP]):
        grades[at] = TOP - rank
    return replace(group, labels=tuple(labels), grades=tuple(grades))


def fitting_temperature(groups: Iterable[Group]) -> float:
    """The temperature at which the teacher's scores of a query spread as `_SPREAD` says."""
    spreads = [pstdev(group.teacher) for group in groups if group.teacher]
    return max(fmean(spreads) / _SPREAD, 1e-6)
