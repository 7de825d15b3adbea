"""No query is learnt from and judged by, under whatever id and in whatever words."""

from __future__ import annotations

import time

import pytest

from secondlook.data import read_qrels, write_qrels, write_queries
from secondlook.data.near_duplicates import clusters
from secondlook.data.origin import write_made
from secondlook.data.splits import add_judged, read_splits
from secondlook.errors import SecondlookError
from secondlook.types import Query

TOPICS = [f"effects of substance{n} on organ{n * 7 % 13}" for n in range(40)]


def folder(tmp_path, texts, **splits):
    (tmp_path / "qrels").mkdir(parents=True)
    write_queries(tmp_path / "queries.jsonl", [Query(name, text) for name, text in texts.items()])
    for name, queries in splits.items():
        write_qrels(tmp_path / "qrels" / f"{name}.tsv", {query: {"d": 1} for query in queries})
    return tmp_path


def test_texts_under_two_ids_are_cut_into_one_split(tmp_path):
    texts = {f"a{n}": text for n, text in enumerate(TOPICS)}
    texts |= {f"b{n}": f"{text.title()}?" for n, text in enumerate(TOPICS)}
    splits = read_splits(folder(tmp_path, texts, train=texts))
    parts = [{query[1:] for query in part} for part in (splits.train, splits.dev, splits.test)]
    assert all(parts)
    assert len(set.union(*parts)) == sum(map(len, parts))
    assert sum(map(len, (splits.train, splits.dev, splits.test))) == 80
    assert 14 <= len(splits.test) <= 18


def test_one_text_ten_times_still_leaves_all_three_splits(tmp_path):
    asked = ["cape fear river", "deep sea fish", "tide tables"]
    texts = {f"q{n}": asked[n % 3] for n in range(30)}
    splits = read_splits(folder(tmp_path, texts, train=texts))
    assert [len(part) for part in (splits.train, splits.dev, splits.test)] == [10, 10, 10]


@pytest.mark.parametrize("origin", ["generated queries: 80 of 120 by a model", "clicks"])
def test_queries_generated_from_one_passage_are_cut_into_one_split(tmp_path, origin):
    asked = {
        f"q{n}": f"{'who what when where'.split()[n % 4]} {n} {TOPICS[n % 40]}" for n in range(80)
    }
    passages = {query: {f"d{int(query[1:]) // 2}": 1} for query in asked}
    write_made(tmp_path, [Query(*query) for query in asked.items()], passages, origin)
    splits = read_splits(tmp_path)
    parts = [
        {next(iter(part[query])) for query in part}
        for part in (splits.train, splits.dev, splits.test)
    ]
    assert all(parts)
    shared = sum(map(len, parts)) - len(set.union(*parts))
    assert shared == 0 if origin.startswith("generated") else shared > 0
    assert 14 <= len(splits.test) <= 18
    later = {*splits.test, *splits.dev}
    assert {*splits.train, *later} == {*asked}


GIVEN = {
    "t1": "What is the capital of France?",
    "t2": "Is a whole life policy worth having in old age?",
    "t3": "What is the capital of Spain?",
    "v1": "what is the capital of italy",
    "v2": "Worth having: is a whole life policy, in old age?",
    "x1": "In old age, is a whole life policy worth having",
    "x2": "What is the capital of Peru?",
}


def given(tmp_path):
    return folder(tmp_path, GIVEN, train=["t1", "t2", "t3"], dev=["v1", "v2"], test=["x1", "x2"])


def test_given_splits_lose_what_repeats_a_test_query_and_nothing_else(tmp_path):
    splits = read_splits(given(tmp_path))
    assert (set(splits.train), set(splits.dev)) == ({"t1", "t3"}, {"v1"})
    assert set(splits.test) == {"x1", "x2"}
    said = splits.repeated()
    assert "1 dev queries repeat test queries, 1 train queries repeat test queries" in said
    assert "t2" in said


def test_given_splits_that_share_texts_can_be_refused_or_kept(tmp_path):
    data = given(tmp_path)
    with pytest.raises(SecondlookError, match=r"1 train queries repeat test queries.*v2"):
        read_splits(data, "refuse")
    kept = read_splits(data, "keep")
    assert (set(kept.train), set(kept.dev)) == ({"t1", "t2", "t3"}, {"v1", "v2"})
    assert len(kept.repeats) == 2


def test_likeness_of_form_is_no_repeat():
    forms = [
        ("What is the capital of France?", "What is the capital of Spain?"),
        ("How much is life insurance at 30?", "How much is life insurance at 40?"),
        ("", "?"),
        ("काला घोड़ा", "कोला घोड़ी"),  # the same consonants with other vowel signs
    ]
    for one, other in forms:
        found = clusters({"one": one, "other": other} | dict(enumerate(TOPICS)))
        assert found["one"] != found["other"]


def test_thirteen_thousand_queries_of_one_form_take_seconds():
    texts = {n: f"what does part {n} of plan {n % 50} cost in year {n % 20}" for n in range(13_000)}
    began = time.process_time()
    assert len(set(clusters(texts).values())) == 13_000
    assert time.process_time() - began < 20  # all pairs would take minutes


def test_backups_and_other_files_beside_the_splits_are_no_splits(tmp_path):
    data = given(tmp_path)
    for name in ("test.tsv~", "test.tsv.bak", "test.old.tsv", "test.tsv.tmp", "tested.txt"):
        (data / "qrels" / name).write_text("x1 0 OLD 1\n")
    assert dict(read_splits(data).test) == {"x1": {"d": 1}, "x2": {"d": 1}}
    empty = tmp_path / "made"
    folder(empty, {"m1": "something else entirely"}, train=["m1"])
    add_judged(empty, data)
    assert read_qrels(empty / "qrels" / "test.tsv") == {"x1": {"d": 1}, "x2": {"d": 1}}


def test_judgments_of_other_queries_are_refused(tmp_path):
    made = folder(tmp_path, {"q1": "tide tables"}, train=["Q1", "Q2"])
    with pytest.raises(SecondlookError, match=r"none of the 2 judged queries has a text.*'Q1'"):
        read_splits(made)


@pytest.mark.parametrize("second", ["test.txt", "test.tsv.gz"])
def test_two_files_of_one_split_are_refused(tmp_path, second):
    data = given(tmp_path)
    write_qrels(data / "qrels" / second, {"x1": {"other": 1}})
    with pytest.raises(SecondlookError, match=f"test.tsv and {second}: keep one"):
        read_splits(data)


def test_sixty_thousand_judged_queries_are_split_within_seconds(tmp_path):
    half = [f"q{n}" for n in range(30_000)], [f"q{n}" for n in range(30_000, 60_000)]
    data = folder(tmp_path, {"q0": "tide"}, train=half[0], test=half[1])
    began = time.process_time()
    assert len(read_splits(data).test) == 30_000
    assert time.process_time() - began < 10  # a pass over the test queries for each takes a minute
