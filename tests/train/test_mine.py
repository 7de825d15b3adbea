"""Mining: who becomes a positive, who a negative, and who neither."""

import pytest

from secondlook.data import CorpusStore
from secondlook.data.near_duplicates import shingles
from secondlook.errors import MissingDocument, MissingQuery, SecondlookError
from secondlook.retrieve.memory import MemoryIndex
from secondlook.train.mine import Miner, MineSettings, words
from secondlook.types import Document, Hit, Query, Ranking

LONG = (
    "the quick brown fox jumps over the lazy dog and runs far away into the dark green wood today"
)
CORPUS = [
    Document("good", LONG),
    Document("twin", LONG.upper().replace(" ", ",  ") + "!"),
    Document("near", LONG + " again"),
    Document("far", "the quick brown fox sleeps"),
    Document("other", "something else altogether"),
    Document("echo", "Something else, altogether."),
    Document("bad", "judged and found wanting"),
    Document("fair", "judged and found middling"),
    Document("lost", "a positive that nothing found"),
    *(Document(f"x{number}", f"filler number {number}") for number in range(30)),
]
QUERIES = {"q": Query("q", "what does the fox do", "description"), "r": Query("r", "empty")}


def ranking(*doc_ids, query_id="q"):
    return Ranking(query_id, tuple(Hit(d, 1 / n) for n, d in enumerate(doc_ids, start=1)))


def mined(grades, rankings, pool=None, **settings):
    miner = Miner(QUERIES, grades, MemoryIndex(CORPUS), MineSettings(**settings), pool)
    return list(miner.groups(rankings)), miner.counts


def by_id(group):
    return {d.id: label for d, label in zip(group.documents, group.labels, strict=True)}


def test_a_group_has_the_positives_and_what_does_not_repeat_them():
    grades = {"q": {"good": 2, "bad": 0, "lost": 1}}
    found = ranking("twin", "near", "far", "other", "echo", "bad", "good")
    (group,), counts = mined(grades, [found])
    labels = by_id(group)
    assert labels.pop("other", -1) == labels.pop("echo", -1) == -1  # one of the two is there
    assert labels == {"good": 2, "lost": 1, "far": -1, "bad": 0}
    assert group.query == QUERIES["q"]
    assert [d.id for d in group.documents][-2:] == ["good", "lost"]
    assert group.ranks[-2:] == (7, 0)
    assert group.missed == ()
    assert counts.dropped == {
        "same text": 1, "near duplicate": 1, "repeated": 1, "grade between": 0,
    }  # fmt: skip
    assert (counts.positives, counts.positives_added) == (2, 1)
    assert (counts.negatives, counts.negatives_judged) == (3, 1)


def test_near_is_eight_tenths_of_the_shingles():
    def jaccard(one, other):
        a, b = (set(shingles(words(Document("", text)))) for text in (one, other))
        return len(a & b) / len(a | b)

    base = " ".join(f"w{number}" for number in range(18))  # 16 shingles
    at, below = base + " a b c d", base + " a b c d e"  # 16 of 20, 16 of 21
    assert jaccard(base, at) == 0.8
    assert jaccard(base, below) < 0.8
    corpus = MemoryIndex([Document("p", base), Document("at", at), Document("below", below)])
    miner = Miner(QUERIES, {"q": {"p": 1}}, corpus, MineSettings())
    (group,) = miner.groups([ranking("at", "below")])
    assert by_id(group) == {"p": 1, "below": -1}


def test_all_candidates_are_the_first_look_as_it_is():
    grades = {"q": {"good": 3, "fair": 1, "bad": -2, "lost": 2, "gone": 2}}
    found = ranking("twin", "good", "fair", "bad", "echo", "other")
    (group,), counts = mined(grades, [found], negatives=None, positive_grade=2)
    assert list(by_id(group).items()) == [
        ("twin", -1), ("good", 3), ("fair", 0), ("bad", 0), ("echo", -1), ("other", -1),
    ]  # fmt: skip
    assert group.ranks == (1, 2, 3, 4, 5, 6)
    assert group.missed == (2, 2)
    assert counts.positives_missed == 2
    (group,), _ = mined(grades, [found], negatives=None, ranks=(2, 3))
    assert list(by_id(group)) == ["good", "fair"]
    assert group.missed == (2, 2)


def test_a_judged_query_that_found_nothing_stays_in_a_validation_set():
    groups, counts = mined({"q": {"good": 1}, "r": {"good": 1}}, [ranking("far")], negatives=None)
    assert [(group.query.id, len(group.documents), group.missed) for group in groups] == [
        ("q", 1, (1,)), ("r", 0, (1,)),
    ]  # fmt: skip
    assert counts.queries == 2


def test_a_grade_between_is_no_negative():
    grades = {"q": {"good": 2, "fair": 1}}
    (group,), counts = mined(grades, [ranking("fair", "far")], positive_grade=2)
    assert by_id(group) == {"good": 2, "far": -1}
    assert counts.dropped["grade between"] == 1


def test_a_grade_too_low_for_a_positive_still_has_its_gain_in_validation():
    grades = {"q": {"good": 2, "fair": 1, "bad": -1, "lost": 1}, "r": {"fair": 1}}
    found = [ranking("fair", "far", "bad", "good"), ranking("fair", query_id="r")]
    (group, low), counts = mined(grades, found, positive_grade=2, negatives=None)
    assert by_id(group) == {"fair": 0, "far": -1, "bad": 0, "good": 2}
    assert group.measured == (1, -1, 0, 2)
    assert (group.missed, counts.positives_missed) == ((1,), 0)
    assert (low.labels, low.measured) == ((0,), (1,))
    (plain,), _ = mined({"q": grades["q"]}, found[:1], negatives=None)
    assert plain.grades is None
    assert plain.measured == plain.labels == (1, -1, 0, 2)


def test_queries_without_a_positive_or_a_negative_are_left_out_and_counted():
    grades = {"q": {"bad": 0}, "r": {"good": 1}}
    groups, counts = mined(grades, [ranking("far"), ranking("far", query_id="nobody")])
    assert groups == []
    assert counts.queries_without_positive == 1
    assert counts.queries_without_candidate == 1
    assert counts.queries_unjudged == 1


def test_found_only_leaves_out_what_the_first_look_did_not_find():
    grades = {"q": {"good": 1, "lost": 1}}
    (group,), counts = mined(grades, [ranking("good", "far")], add_positives=False)
    assert by_id(group) == {"good": 1, "far": -1}
    assert group.missed == (1,)
    assert counts.positives_added == 0


def test_a_positive_beyond_the_ranks_is_added_with_its_rank():
    found = ranking("far", "other", "good")
    (group,), counts = mined({"q": {"good": 1}}, [found], ranks=(1, 2))
    assert group.ranks == (1, 2, 3)
    assert counts.positives_added == 1


def test_negatives_are_drawn_from_the_ranks_by_seed_and_query():
    fillers = [f"x{number}" for number in range(30)]
    grades = {"q": {"good": 1}, "r": {"good": 1}}

    def drawn(rankings, **settings):
        groups, _ = mined(grades, rankings, negatives=4, ranks=(11, 30), **settings)
        return {
            group.query.id: [d.id for d in group.documents if d.id != "good"] for group in groups
        }

    both = drawn([ranking(*fillers), ranking(*fillers, query_id="r")])
    assert all(len(set(some)) == 4 and set(some) <= set(fillers[10:]) for some in both.values())
    assert both["q"] != both["r"]
    assert drawn([ranking(*fillers, query_id="r"), ranking(*fillers)]) == both
    assert drawn([ranking(*fillers)], seed=8)["q"] != both["q"]


def test_random_and_judged_negatives_need_no_first_look(tmp_path):
    grades = {"q": {"good": 1, "bad": 0, "gone": 0}}
    with CorpusStore.build(tmp_path / "corpus", CORPUS) as pool:
        (group,), _ = mined(grades, [], pool, negatives=0, random=5, judged=True)
    labels = by_id(group)
    assert (labels.pop("good"), labels.pop("bad")) == (1, 0)
    assert list(labels.values()) == [-1] * 5
    assert not {"twin", "near"} & labels.keys()
    with pytest.raises(SecondlookError, match="bm25s index"):
        mined(grades, [], random=5)


def test_a_positive_without_text_is_missed_but_a_candidate_without_is_refused():
    (group,), counts = mined({"q": {"good": 1, "gone": 2}}, [ranking("far")])
    assert group.missed == (2,)
    assert counts.positives_without_text == 1
    with pytest.raises(MissingDocument, match="'gone'"):
        mined({"q": {"good": 1}}, [ranking("gone")])
    with pytest.raises(MissingDocument, match="'gone'"):
        mined({"q": {"good": 1, "gone": 1}}, [ranking("gone", "far")])


def test_a_judged_query_without_text_is_refused():
    with pytest.raises(MissingQuery):
        mined({"s": {"good": 1}}, [ranking("far", query_id="s")])


def test_a_grade_that_no_group_file_can_hold_is_named():
    with pytest.raises(SecondlookError, match="'good' the grade 200 for query 'q'"):
        mined({"q": {"good": 200}}, [ranking("good", "far")])


def test_ranks_count_upwards_from_one():
    for ranks in ((0, 5), (6, 5)):
        with pytest.raises(SecondlookError, match="as in 1-100"):
            MineSettings(ranks=ranks)
