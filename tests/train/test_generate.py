"""Queries made of passages, and whether they find them again."""

from __future__ import annotations

from secondlook.retrieve.memory import MemoryIndex
from secondlook.train.generate import GeneratedQuery, retrieving_their_passage, round_trip, sampled
from secondlook.types import Document

DOCUMENTS = [
    Document("fear", "cape fear is a river"),
    Document("bogue", "bogue is a fish of the deep sea"),
    Document("tide", "the tide of the deep sea"),
]


def search(queries):
    return MemoryIndex(DOCUMENTS).retrieve(queries, 1)


def test_a_query_is_kept_if_its_passage_comes_back():
    queries = [["cape fear", "nothing of it"], ["bogue fish"], ["deep sea bogue"]]
    asked = round_trip(DOCUMENTS, queries, search)
    assert asked == [
        GeneratedQuery("cape fear", "fear", 1),
        GeneratedQuery("nothing of it", "fear", None),
        GeneratedQuery("bogue fish", "bogue", 1),
        GeneratedQuery("deep sea bogue", "tide", None),
    ]
    assert [GeneratedQuery.read(one.line) for one in asked] == asked
    kept, qrels = retrieving_their_passage(asked)
    assert [query.text for query in kept] == ["cape fear", "bogue fish"]
    assert list(qrels.values()) == [{"fear": 1}, {"bogue": 1}]


def test_a_query_asked_of_two_passages_is_one_with_two_answers():
    asked = [GeneratedQuery("deep sea", "bogue", 1), GeneratedQuery("Deep sea", "tide", 2)]
    kept, qrels = retrieving_their_passage(asked)
    assert [query.text for query in kept] == ["deep sea"]
    assert qrels == {kept[0].id: {"bogue": 1, "tide": 1}}


def test_repeats_and_empty_queries_are_not_searched_for():
    assert round_trip(DOCUMENTS[:1], [["cape  fear", "cape fear", "  "]], search) == [
        GeneratedQuery("cape fear", "fear", 1)
    ]
    assert round_trip(DOCUMENTS[:1], [[]], search) == []


def test_passages_are_drawn_by_their_ids_whatever_their_order():
    many = [Document(f"d{n}", "text") for n in range(100)]
    drawn = sampled(many, 10, seed=1)
    assert len(drawn) == 10
    assert sampled(reversed(many), 10, seed=1) == drawn
    assert sampled(many, 10, seed=2) != drawn
    grown = sampled([*many, *(Document(f"e{n}", "text") for n in range(10))], 10, seed=1)
    assert len(set(grown) & set(drawn)) >= 7
    assert len(sampled(many, 1000, seed=1)) == 100
