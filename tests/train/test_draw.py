from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invented import invent
from secondlook.errors import SecondlookError
from secondlook.train.draw import Draw, usable
from secondlook.train.groups import Group, Groups, write_groups
from secondlook.types import Query

GROUP = replace(invent(1, candidates=12)[0], labels=(1, 2, 1, *[-1] * 9))


def ids(drawn):
    return [document.id for document in drawn.documents]


def test_positives_come_first_and_no_more_of_each_kind_than_asked():
    drawn = Draw(2, 4, seed="7").documents(GROUP, epoch=0)
    assert [label > 0 for label in drawn.labels] == [True, True, False, False, False, False]
    assert len(set(ids(drawn))) == 6


@given(st.integers(1, 8), st.integers(0, 5))
def test_more_negatives_are_the_same_and_some_more(negatives, epoch):
    fewer = Draw(1, negatives, seed="7").documents(GROUP, epoch)
    more = Draw(1, negatives + 1, seed="7").documents(GROUP, epoch)
    assert ids(more)[: len(fewer.documents)] == ids(fewer)


@given(st.integers(3, 11))
def test_a_dropped_document_changes_nothing_but_its_own_place(dropped):
    draw = Draw(1, 9, seed="7")
    kept = [at for at in range(12) if at != dropped]
    denoised = Group(
        GROUP.query,
        tuple(GROUP.documents[at] for at in kept),
        tuple(GROUP.labels[at] for at in kept),
        tuple(GROUP.ranks[at] for at in kept),
    )
    before = [one for one in ids(draw.documents(GROUP, 0)) if one != GROUP.documents[dropped].id]
    assert ids(draw.documents(denoised, 0)) == before


def test_another_epoch_or_seed_draws_others():
    draw = Draw(1, 5, seed="7")
    first = ids(draw.documents(GROUP, 0))
    assert ids(draw.documents(GROUP, 0)) == first
    assert ids(draw.documents(GROUP, 1)) != first
    assert ids(Draw(1, 5, seed="8").documents(GROUP, 0)) != first


def test_the_order_of_queries_does_not_depend_on_which_others_there_are():
    names = [f"q{number}" for number in range(50)]
    draw = Draw(1, 1, seed="7")
    order = [names[at] for at in draw.order(names, epoch=3)]
    fewer = names[:20] + names[25:]
    assert [fewer[at] for at in draw.order(fewer, 3)] == [one for one in order if one in fewer]
    assert order != names
    assert sorted(order) == sorted(names)


def test_places_of_missing_positives_are_filled_where_asked():
    unjudged = replace(GROUP, labels=(-1,) * 12)
    assert len(Draw(2, 4, seed="7").documents(unjudged, 0).documents) == 4
    assert len(Draw(2, 4, seed="7", fill=True).documents(unjudged, 0).documents) == 6
    only_positives = replace(GROUP, labels=(1,) * 12)
    assert len(Draw(2, 4, seed="7").documents(only_positives, 0).documents) == 2
    assert len(Draw(2, 4, seed="7", fill=True).documents(only_positives, 0).documents) == 6
    one_other = replace(GROUP, labels=(*(1,) * 11, 0))
    assert sorted(Draw(2, 4, seed="7", fill=True).documents(one_other, 0).labels) == [0, *[1] * 5]


def test_groups_that_teach_nothing_are_left_out(tmp_path):
    good, other = invent(2)
    only_positives = replace(good, query=Query("p", "a"), labels=(1,) * 6)
    no_positive = replace(good, query=Query("n", "a"), labels=(0,) * 6)
    path = tmp_path / "groups.parquet"
    write_groups(path, [only_positives, good, no_positive, other], about={})
    found = usable(Groups([path]), Draw(1, 3, seed="7"), teacher=False, labels=True)
    assert found.rows == (1, 3)
    assert found.query_ids == ("q0", "q1")
    assert found.documents == 8


def test_a_teacher_is_asked_for_where_it_is_needed(tmp_path):
    path = tmp_path / "groups.parquet"
    write_groups(path, invent(3), about={})
    with pytest.raises(SecondlookError, match="teacher"):
        usable(Groups([path]), Draw(1, 3, seed="7"), teacher=True, labels=False)
