import numpy as np
import pytest

from secondlook.errors import MissingDocument
from secondlook.rank import Fusion, Searcher, cut, rerank, with_tails
from secondlook.retrieve.memory import MemoryIndex
from secondlook.types import Document, Hit, Query, Ranking

DOCUMENTS = [
    Document("1", "red apples"),
    Document("2", "red apples and green apples"),
    Document("3", "red"),
    Document("4", "blue"),
]


class Shorter:
    """A scorer that likes short texts, and remembers what it saw."""

    def __init__(self):
        self.seen = []

    def score(self, pairs):
        self.seen.append(list(pairs))
        return np.array([-len(document.text) for _, document in pairs], np.float32)


def test_the_second_look_orders_what_the_first_one_found():
    index = MemoryIndex(DOCUMENTS)
    searcher = Searcher(index, index, Shorter())
    (ranking,) = searcher.search([Query("q", "red apple")], k=2, depth=10)
    assert ranking == Ranking("q", (Hit("3", -3.0), Hit("1", -10.0)))


def test_only_the_best_of_the_first_look_are_seen():
    index, scorer = MemoryIndex(DOCUMENTS), Shorter()
    Searcher(index, index, scorer).search([Query("q", "red apple")], k=1, depth=2)
    assert {document.id for _, document in scorer.seen[0]} == {"1", "2"}


def test_all_pairs_are_scored_at_once_and_find_their_query_again():
    queries = [Query("a", "x"), Query("b", "y"), Query("c", "z")]
    rankings = [
        Ranking.of("a", [Hit("1", 1.0), Hit("2", 2.0)]),
        Ranking("b", ()),
        Ranking.of("c", [Hit("2", 1.0), Hit("4", 0.5)]),
    ]
    scorer = Shorter()
    made = rerank(queries, rankings, MemoryIndex(DOCUMENTS), scorer)
    assert len(scorer.seen) == 1
    assert [(query.id, document.id) for query, document in scorer.seen[0]] == [
        ("a", "2"),
        ("a", "1"),
        ("c", "2"),
        ("c", "4"),
    ]
    assert [[hit.doc_id for hit in r.hits] for r in made] == [["1", "2"], [], ["4", "2"]]


def test_a_run_of_another_corpus_is_refused():
    with pytest.raises(MissingDocument, match="'99'"):
        rerank([Query("q", "")], [Ranking("q", (Hit("99", 1.0),))], MemoryIndex([]), Shorter())


def test_a_fusion_gives_the_first_look_its_say():
    index = MemoryIndex(DOCUMENTS)
    (first,) = index.retrieve([Query("q", "red apple")], 10)
    only_first = Searcher(index, index, Shorter(), Fusion(1.0))
    (ranking,) = only_first.search([Query("q", "red apple")], k=3)
    assert [hit.doc_id for hit in ranking.hits] == [hit.doc_id for hit in first.hits]


def test_a_cascade_keeps_what_the_cheap_scorer_likes_with_the_first_looks_scores():
    queries = [Query("a", "x"), Query("b", "y")]
    rankings = [
        Ranking.of("a", [Hit("1", 3.0), Hit("2", 2.0), Hit("3", 1.0)]),
        Ranking.of("b", [Hit("2", 1.0), Hit("4", 0.5)]),
    ]
    scorer = Shorter()
    kept = cut(queries, rankings, MemoryIndex(DOCUMENTS), scorer, keep=2)
    assert kept == [Ranking("a", (Hit("1", 3.0), Hit("3", 1.0))), rankings[1]]
    assert {query.id for query, _ in scorer.seen[0]} == {"a"}, "b is short enough already"


def test_hits_that_were_not_re_ranked_stay_below_in_their_order():
    first = [
        Ranking.of(query, [Hit(name, float(9 - at)) for at, name in enumerate("abcd")])
        for query in ("q1", "q2", "q3")
    ]
    looks = [Ranking.of(query, [Hit("a", -7.5), Hit("c", 1e9)]) for query in ("q1", "q3")]
    made = list(with_tails(looks, iter(first)))
    assert [ranking.query_id for ranking in made] == ["q1", "q3"]
    assert [hit.doc_id for hit in made[0].hits] == ["c", "a", "b", "d"]
    assert [hit.score for hit in made[0].hits] == [1e9, -7.5, -8.5, -9.5]


@pytest.mark.parametrize("lowest", [-3e8, 0.0, 1e-7, 5e7])
def test_their_scores_make_no_ties_in_single_precision(lowest):
    first = Ranking.of("q", [Hit(f"d{at:03}", float(-at)) for at in range(500)])
    [made] = with_tails([Ranking("q", (Hit("d000", lowest),))], [first])
    scores = np.array([hit.score for hit in made.hits], np.float32)
    assert (np.diff(scores) < 0).all()
    assert [hit.doc_id for hit in made.hits] == [hit.doc_id for hit in first.hits]
