import numpy as np
import pytest

from secondlook.evaluate.breakdown import (
    Facet,
    break_down,
    document_facets,
    first_stage_facet,
    query_facets,
)
from secondlook.evaluate.compare import compare
from secondlook.types import Document, Hit, Query, Ranking

IDS = [f"q{number}" for number in range(12)]
QRELS = {query: {"good": 1, f"other of {query}": 0} for query in IDS}


def ranking(query, *doc_ids):
    return Ranking.of(query, [Hit(d, float(-at)) for at, d in enumerate(doc_ids)])


@pytest.fixture(scope="module")
def difference():
    """RR: the first six queries gain .5, the others stay."""
    base = [ranking(query, "bad", "good") for query in IDS]
    new = [ranking(q, "good", "bad") if at < 6 else base[at] for at, q in enumerate(IDS)]
    rng = np.random.default_rng(0)
    found = compare(QRELS, ("base", base), [("new", new)], ["RR@10"], rng=rng)
    return found.runs[0].differences[0]


def sliced(difference, facet):
    return break_down(difference, facet, np.random.default_rng(0)).slices


def test_numbers_with_edges_make_the_groups_that_are_named(difference):
    facet = Facet("n", {query: at for at, query in enumerate(IDS)}, (6,), ("few", "many"))
    few, many = sliced(difference, facet)
    assert (few.label, few.queries, few.base, few.new, few.delta) == ("few", 6, 0.5, 1.0, 0.5)
    assert (many.label, many.queries, many.delta, many.low, many.high) == ("many", 6, 0, 0, 0)


def test_numbers_without_edges_are_cut_at_their_quartiles(difference):
    facet = Facet("n", {query: at for at, query in enumerate(IDS)})
    assert [(one.label, one.queries) for one in sliced(difference, facet)] == [
        ("0–2", 3),
        ("3–5", 3),
        ("6–8", 3),
        ("9–11", 3),
    ]


def test_one_value_for_all_is_one_group(difference):
    [one] = sliced(difference, Facet("n", dict.fromkeys(IDS, 3)))
    assert (one.label, one.queries, one.delta) == ("3", 12, 0.25)


def test_rare_names_stand_together_and_queries_without_a_value_are_left_out(difference):
    names = dict(zip(IDS[:11], ["person"] * 6 + ["entity", "numeric"] + ["place"] * 3, strict=True))
    large, other = sliced(difference, Facet("type", names))
    assert (large.label, large.queries, large.delta) == ("person", 6, 0.5)
    assert (other.label, other.queries) == ("other", 5)


def test_facets_of_queries():
    queries = [Query("1", "the deep sea"), Query("2", "bogue", type="location")]
    facets = {
        facet.name: facet.values
        for facet in query_facets(queries, lambda text: text.count("bogue"))
    }
    assert facets == {
        "query length in words": {"1": 3, "2": 1},
        "query type": {"2": "location"},
        "query words outside the vocabulary": {"1": 0, "2": 1},
    }


def test_the_first_relevant_document_is_counted_from_the_grade_that_counts():
    qrels = {"1": {"a": 1, "b": 2}, "2": {"c": 2}}
    facet = first_stage_facet(qrels, [ranking("1", "a", "x", "b"), ranking("2", "a")], 2)
    assert facet.values["1"] == 3
    assert facet.values["2"] >= facet.edges[-1]


def test_overlap_and_length_are_of_the_relevant_documents_that_have_text():
    texts = {"a": Document("a", "sea fish swim"), "b": Document("b", "tide")}
    qrels = {"1": {"a": 1, "b": 0, "lost": 1}, "2": {"lost": 1}}
    queries = [Query("1", "sea river"), Query("2", "tide")]
    overlap, length = document_facets(queries, qrels, texts, str.split, 1)
    assert overlap.values == {"1": 0.5}
    assert length.values == {"1": 3.0}
