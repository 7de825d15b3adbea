"""What a student is taught: which queries, which candidates, and what of the teacher's scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from invented import DEEP_SEA, invent
from secondlook import Hit, Query, Ranking, SecondlookError
from secondlook.errors import VanishedDocuments
from secondlook.train.distillation import (
    fitting_temperature,
    hard_candidates,
    labelled_by_teacher,
    split_queries,
    unlabelled_groups,
)


def queries(count):
    return [Query(f"q{n}", f"word{n} other{n} third{n}") for n in range(count)]


def ranking(query_id, *doc_ids):
    return Ranking.of(query_id, [Hit(doc, -float(at)) for at, doc in enumerate(doc_ids)])


def test_a_fifth_is_held_out_and_no_text_is_in_two_parts():
    asked = [*queries(100), Query("again", "Word7, other7 third7!"), Query("empty", " ")]
    split = split_queries(asked)
    parts = [{query.id for query in part} for part in split.parts().values()]
    assert [len(part) for part in parts] == [80, 6, 14]
    assert len(set.union(*parts)) == 100
    assert len({"q7", "again"} & set.union(*parts)) == 1
    more = split_queries([*asked[::-1]])
    assert {query.id for query in more.test} - {"again"} <= parts[2] | {"q7"}
    large = split_queries(queries(2000))
    assert (len(large.validation), len(large.test)) == (40, 100)


def test_too_few_queries_are_refused():
    with pytest.raises(SecondlookError, match="too few to learn from"):
        split_queries(queries(3))


def test_half_of_the_candidates_are_the_students_own_and_the_rest_is_drawn():
    pool = ranking("q", *(f"d{n}" for n in range(20)))
    own = ranking("q", *(f"d{n}" for n in reversed(range(20))))
    chosen = hard_candidates(pool, own, 6)
    assert len(chosen) == 6
    assert chosen[-3:] == ["d17", "d18", "d19"]
    assert chosen == hard_candidates(pool, own, 6)
    assert hard_candidates(ranking("q", "a", "b"), ranking("q", "b", "a"), 6) == ["a", "b"]


def test_groups_hold_texts_and_no_judgment():
    class Texts:
        def fetch(self, doc_ids):
            return [next(doc for doc in DEEP_SEA if doc.id == name) for name in doc_ids]

    pool = [ranking("q0", "d3", "d1", "d2"), ranking("q1", "d4"), ranking("q2")]
    groups = list(unlabelled_groups(queries(4), pool, pool, Texts(), 2))
    assert [group.query.id for group in groups] == ["q0"], "one document has no order"
    assert set(groups[0].labels) == {-1}
    assert groups[0].teacher is None
    assert groups[0].documents[0].id == "d3"
    assert groups[0].ranks[0] == 1


def test_candidates_that_left_a_live_index_are_passed_over():
    class Live:
        def fetch(self, doc_ids):
            known = {doc.id: doc for doc in DEEP_SEA if doc.id != "d1"}
            if "d1" in doc_ids:
                raise VanishedDocuments(["d1"], "products", known)
            return [known[name] for name in doc_ids]

    pool = [ranking("q0", "d3", "d1", "d2"), ranking("q1", "d1", "d4")]
    (group,) = unlabelled_groups(queries(2), pool, pool, Live(), 3)
    assert [document.id for document in group.documents] == ["d3", "d2"]
    assert group.ranks == (1, 3)


def test_the_teachers_best_is_the_positive_and_its_ten_best_have_grades():
    (group,) = invent(1, candidates=12, teacher=True)
    taught = labelled_by_teacher(group)
    order = sorted(range(12), key=lambda at: -group.teacher[at])
    assert [taught.labels[at] for at in order] == [1] + [-1] * 11
    assert [taught.grades[at] for at in order] == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]
    assert taught.teacher == group.teacher


def test_the_temperature_brings_the_teachers_scores_to_one_spread():
    groups = [labelled_by_teacher(group) for group in invent(9, teacher=True)]
    wider = [replace(g, teacher=tuple(10 * score for score in g.teacher)) for g in groups]
    assert fitting_temperature(wider) == pytest.approx(10 * fitting_temperature(groups))
