import math

import pytest

from secondlook.errors import InvalidRanking, MissingDocument, UnknownName
from secondlook.types import Hit, Ranking


def test_ties_stand_as_trec_eval_reads_them():
    ranking = Ranking.of("q", [Hit("a", 1.0), Hit("c", 1.0), Hit("b", 2.0), Hit("d", 1.0)])
    assert [hit.doc_id for hit in ranking.hits] == ["b", "d", "c", "a"]


@pytest.mark.parametrize(
    "hits",
    [
        (Hit("a", 1.0), Hit("b", 2.0)),
        (Hit("a", 1.0), Hit("b", 1.0)),
        (Hit("a", 2.0), Hit("b", 1.0), Hit("a", 0.5)),
        (Hit("a", math.nan), Hit("b", 1.0)),
        (Hit("a", math.nan),),
    ],
    ids=["worst first", "tie by ascending id", "a document twice", "NaN", "a lone NaN"],
)
def test_anything_else_is_refused(hits):
    with pytest.raises(InvalidRanking):
        Ranking("q", hits)


def test_top_keeps_the_best():
    ranking = Ranking.of("q", [Hit(str(i), float(i)) for i in range(5)])
    assert ranking.top(2) == Ranking("q", (Hit("4", 4.0), Hit("3", 3.0)))
    assert ranking.top(10) == ranking


def test_nouns_are_frozen():
    with pytest.raises(AttributeError):
        Hit("a", 1.0).score = 2.0


def test_missing_documents_are_named_but_not_all_of_them():
    message = str(MissingDocument([str(i) for i in range(8)], "the index"))
    assert "'4'" in message
    assert "'5'" not in message
    assert "3 more" in message


def test_the_nearest_name_is_offered():
    assert "did you mean 'learning_rate'?" in str(
        UnknownName("key", "lerning_rate", ["learning_rate", "epochs"])
    )
    assert "did you mean 'nDCG@10'?" in str(UnknownName("measure", "ndcg10", ["nDCG@10", "R@10"]))
    assert "known: a, b" in str(UnknownName("key", "zzzz", ["b", "a"]))
