"""What every engine promises, the fake included."""

from __future__ import annotations

import random

import pytest

from secondlook.errors import MissingDocument, WrongArgument
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.retrieve.memory import MemoryIndex
from secondlook.types import Corpus, Document, Query, Retriever

DOCUMENTS = [
    Document("cats", "Cats chase mice. A cat's paws are quiet.", "On cats"),
    Document("dogs", "Dogs chase cats, and cats run from dogs."),
    Document("mice", "Mice eat cheese; nothing else matters to mice."),
    Document("mixed/ID:with?odd&chars#ü", "Owls hunt mice at night."),
    Document("empty", ""),
    Document("z-twin", "Identical text about herons."),
    Document("a-twin", "Identical text about herons."),
    Document("title-only", "", "Penguins of the south"),
    Document("weighed", "Storks and pelicans wade.", "Waders", weights={"Storks": 2, "wade": 90}),
    Document("expanded", "They fly far.", "Terns", queries=("which bird migrates", "arctic tern")),
]


def _bm25s(documents, request):
    folder = request.getfixturevalue("tmp_path_factory").mktemp("contract") / "index"
    return Bm25Index.build(folder, documents, Bm25Settings())


def _memory(documents, _request):
    return MemoryIndex(documents)


def _opensearch(documents, request):
    from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings

    cluster = request.getfixturevalue("three_nodes")
    folder = request.getfixturevalue("tmp_path_factory").mktemp("contract") / "index"
    settings = OpenSearchSettings(urls=cluster.urls, name="contract", shards=3, replicas=1)
    return OpenSearchIndex.build(folder, documents, settings)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(_memory, id="memory"),
        pytest.param(_bm25s, id="bm25s"),
        pytest.param(_opensearch, id="opensearch", marks=pytest.mark.real),
    ],
)
def engine(request):
    return request.param(DOCUMENTS, request)


def ids(ranking):
    return [hit.doc_id for hit in ranking.hits]


def test_it_is_a_retriever_and_a_corpus(engine):
    assert isinstance(engine, Retriever)
    assert isinstance(engine, Corpus)


def test_one_ranking_per_query_in_the_order_asked(engine):
    queries = [Query("2", "cheese"), Query("1", "owls"), Query("3", "dogs")]
    assert [r.query_id for r in engine.retrieve(queries, 5)] == ["2", "1", "3"]


def test_only_documents_that_share_a_term_are_hits(engine):
    (ranking,) = engine.retrieve([Query("q", "owls hunting")], 100)
    assert ids(ranking) == ["mixed/ID:with?odd&chars#ü"]
    assert all(hit.score > 0 for hit in ranking.hits)


def test_words_match_by_stem_whatever_their_case(engine):
    (ranking,) = engine.retrieve([Query("q", "HUNTED")], 10)
    assert ids(ranking) == ["mixed/ID:with?odd&chars#ü"]


def test_the_title_is_searched_too(engine):
    (ranking,) = engine.retrieve([Query("q", "penguin")], 10)
    assert ids(ranking) == ["title-only"]


def test_a_weighed_document_is_found_by_its_weights_alone(engine):
    found = engine.retrieve([Query(text, text) for text in ("storks", "pelican", "waders")], 10)
    assert [ids(ranking) for ranking in found] == [["weighed"], [], []]


def test_predicted_queries_are_searched_too(engine):
    found = engine.retrieve([Query(text, text) for text in ("migrating", "terns", "far")], 10)
    assert [ids(ranking) for ranking in found] == [["expanded"]] * 3


def test_at_most_k_hits_and_the_best_ones(engine):
    (everything,) = engine.retrieve([Query("q", "cats mice")], 100)
    (best,) = engine.retrieve([Query("q", "cats mice")], 2)
    assert len(everything.hits) == 4
    assert best == everything.top(2)


@pytest.mark.parametrize("k", [0, -1])
def test_fewer_hits_than_one_are_refused(engine, k):
    with pytest.raises(WrongArgument, match=f"k is {k}: ask for 1 hit or more"):
        engine.retrieve([Query("q", "cats mice")], k)


def test_ties_are_broken_by_id_descending(engine):
    (ranking,) = engine.retrieve([Query("q", "herons")], 10)
    assert ids(ranking) == ["z-twin", "a-twin"]
    assert ranking.hits[0].score == ranking.hits[1].score


@pytest.mark.parametrize("text", ["", "   ", "the of and", "zyzzyva", "?!… —", "\x00\x07", "🦉"])
def test_a_query_that_matches_nothing_gets_no_hits(engine, text):
    assert engine.retrieve([Query("q", text)], 10)[0].hits == ()


@pytest.mark.parametrize("text", ['AND OR NOT "cats', "cats:(dogs) [x TO y]", "cats* ~2 ^3", "\\"])
def test_a_query_is_words_not_a_language(engine, text):
    (ranking,) = engine.retrieve([Query("q", text)], 10)
    assert ("cats" in ids(ranking)) == ("cats" in text)


def test_a_very_long_query_is_answered(engine):
    words = [f"word{number}" for number in range(5_000)]
    (ranking,) = engine.retrieve([Query("q", " ".join([*words, "cheese"]))], 10)
    assert ids(ranking) == ["mice"]


def test_no_queries_no_rankings(engine):
    assert engine.retrieve([], 10) == []


def test_asking_twice_gives_the_same(engine):
    queries = [Query(str(n), text) for n, text in enumerate(["cats", "mice", "chase", "text"])]
    assert engine.retrieve(queries, 10) == engine.retrieve(queries, 10)


def test_a_query_does_not_depend_on_its_neighbours(engine):
    queries = [Query(str(n), text) for n, text in enumerate(["cats", "mice", "", "text"])]
    together = engine.retrieve(queries, 10)
    assert together == [engine.retrieve([query], 10)[0] for query in queries]


def test_texts_come_back_without_weights_and_queries(engine):
    assert engine.fetch(["weighed", "expanded"]) == [
        Document("weighed", "Storks and pelicans wade.", "Waders"),
        Document("expanded", "They fly far.", "Terns"),
    ]


def test_texts_come_back_as_they_went_in_and_in_the_order_asked(engine):
    order = [d.id for d in DOCUMENTS if not d.queries and d.weights is None]
    random.Random(3).shuffle(order)
    by_id = {document.id: document for document in DOCUMENTS}
    assert engine.fetch(order) == [by_id[doc_id] for doc_id in order]
    assert engine.fetch(["cats", "cats"]) == [by_id["cats"]] * 2
    assert engine.fetch([]) == []


def test_an_unknown_id_is_named(engine):
    with pytest.raises(MissingDocument, match="'unicorns'"):
        engine.fetch(["cats", "unicorns"])
