"""One run of a comparison: its measures, its ties, and which queries it answers in which way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from secondlook.evaluate.measures import Tally, parse_measure, require_answers, single_precision
from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from secondlook.evaluate.evaluation import Evaluation
    from secondlook.types import Qrels

    TieOrder = Literal["reversed", "shuffled"]

TIE_ORDERS: tuple[TieOrder, ...] = ("reversed", "shuffled")
"""Other ways to order equal scores, as arbitrary as trec_eval's own (document id, descending)."""
_TOP = 10


@dataclass(frozen=True, slots=True)
class Side:
    """A run as one side of a comparison."""

    name: str
    evaluation: Evaluation
    """With ties broken as trec_eval does."""
    by_tie_order: Mapping[TieOrder, Evaluation]
    """The same, with ties broken otherwise."""
    fingerprints: Mapping[str, int]
    """Judged query with results → a hash of its documents and their scores."""
    unordered: int
    """Queries of which the whole top ten has one score: only document ids order it."""
    tied: int
    """Queries whose values depend on the order of equal scores."""

    @property
    def answered(self) -> int:
        """How many judged queries have results."""
        return len(self.fingerprints)


def read_side(
    qrels: Qrels, name: str, rankings: Iterable[Ranking], measures: Sequence[str]
) -> Side:
    """Evaluate a run, reading it once. Raises SecondlookError where it answers no judged query."""
    parsed = [parse_measure(spelling) for spelling in measures]
    tally = Tally(qrels, parsed)
    otherwise = {order: Tally(qrels, parsed) for order in TIE_ORDERS}
    fingerprints, unordered = {}, 0
    for ranking in rankings:
        tally.add(ranking)
        grades = qrels.get(ranking.query_id)
        if not (grades and ranking.hits):
            continue
        fingerprints[ranking.query_id] = hash(ranking.hits)
        scores = single_precision(ranking)
        unordered += len(scores) > 1 and len(set(scores[:_TOP])) == 1
        if _ties_matter(ranking, scores, grades):
            for order, other in otherwise.items():
                other.add(_reordered(ranking, scores, order))
    evaluation = tally.result()
    require_answers(evaluation, name)
    return Side(
        name,
        evaluation,
        {order: _completed(other, evaluation) for order, other in otherwise.items()},
        fingerprints,
        unordered,
        len(otherwise[TIE_ORDERS[0]].found),
    )


def _ties_matter(ranking: Ranking, scores: Sequence[float], grades: Mapping[str, int]) -> bool:
    """Whether documents of equal score have different grades; else no order of them is better."""
    places = zip(scores, (grades.get(hit.doc_id, 0) for hit in ranking.hits), strict=True)
    return any(above[0] == below[0] and above[1] != below[1] for above, below in pairwise(places))


def _reordered(ranking: Ranking, scores: Sequence[float], order: TieOrder) -> Ranking:
    """The same hits without ties: equal scores are ordered by document id or by its checksum."""

    def key(place: int) -> tuple[float, int, str]:
        doc_id = ranking.hits[place].doc_id
        return -scores[place], crc32(doc_id.encode()) if order == "shuffled" else 0, doc_id

    places = sorted(range(len(scores)), key=key)
    hits = (Hit(ranking.hits[place].doc_id, float(-at)) for at, place in enumerate(places))
    return Ranking(ranking.query_id, tuple(hits))


def _completed(tally: Tally, whole: Evaluation) -> Evaluation:
    """The values of the queries in the tally; of all others, those of the whole run."""
    own = tally.result().per_query
    return replace(
        whole,
        per_query={
            measure: {
                query: own[measure][query] if query in tally.found else value
                for query, value in values.items()
            }
            for measure, values in whole.per_query.items()
        },
    )
