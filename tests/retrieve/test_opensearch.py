"""The cluster engine on a real cluster that is well."""

from __future__ import annotations

import json
import random
from itertools import count, pairwise

import pytest

from secondlook.errors import EngineProblem, IndexProblem, MalformedInput, MissingDocument
from secondlook.retrieve.folder import read_card
from secondlook.retrieve.index import Index
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.types import Document, Query

pytestmark = pytest.mark.real

_NAMES = count()
ANIMALS = ("okapi", "zebra", "heron", "otter", "lynx", "gecko", "tapir", "bison")


def passages(number: int, seed: int = 0) -> list[Document]:
    """Short texts of lengths and words that vary, so that scores do."""
    rng = random.Random(seed)
    return [
        Document(
            f"d{position}",
            f"passage {position} " + " ".join(rng.choices(ANIMALS, k=rng.randrange(3, 12))),
            title=rng.choice(("", "On animals", "Heron and otter")),
        )
        for position in range(number)
    ]


@pytest.fixture
def settings(three_nodes):
    """Settings with a name of its own for each test."""
    return OpenSearchSettings(urls=three_nodes.urls, name=f"test{next(_NAMES)}", shards=2)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "index"


def indices(cluster, name):
    return sorted(cluster.get(0, f"/{name}*"))


def ids(ranking):
    return [hit.doc_id for hit in ranking.hits]


def test_an_index_is_what_its_folder_says(folder, settings):
    built = OpenSearchIndex.build(folder, passages(300), settings)
    assert isinstance(built, Index)
    opened = OpenSearchIndex.open(folder)
    assert opened.card == built.card == read_card(folder)
    assert opened.card.documents == 300
    assert opened.card.fingerprint.startswith("sha256:")
    assert OpenSearchSettings.model_validate(opened.card.settings) == settings


def test_a_folder_follows_what_another_machine_indexed_under_its_name(folder, settings):
    OpenSearchIndex.build(folder, passages(300), settings)
    other = settings.model_copy(update={"shards": 3, "k1": 1.2})
    elsewhere = OpenSearchIndex.build(folder.with_name("elsewhere"), passages(40), other)
    assert OpenSearchIndex.open(folder).card == elsewhere.card


def test_title_and_text_are_one_field_to_bm25(folder, settings):
    whole = OpenSearchIndex.build(
        folder,
        [Document("text", "zebra otter"), Document("title", "otter", "zebra"), Document("n", "x")],
        settings.model_copy(update={"shards": 1}),
    )
    (ranking,) = whole.retrieve([Query("q", "zebras")], 10)
    assert ids(ranking) == ["title", "text"]  # equal scores stand by id, descending
    assert ranking.hits[0].score == ranking.hits[1].score > 0


def test_k1_and_b_reach_the_engine(folder, settings):
    documents = [Document("once", "zebra lynx"), Document("often", "zebra " * 9 + "lynx " * 9)]

    def scores(k1, b):
        given = settings.model_copy(update={"shards": 1, "k1": k1, "b": b})
        (ranking,) = OpenSearchIndex.build(folder, documents, given).retrieve(
            [Query("q", "zebra")], 2
        )
        return {hit.doc_id: hit.score for hit in ranking.hits}

    flat = scores(k1=0.0, b=0.4)
    assert flat["once"] == flat["often"]
    saturating = scores(k1=0.9, b=0.0)
    assert saturating["often"] / saturating["once"] == pytest.approx((9 / 9.9) / (1 / 1.9))


def test_a_smaller_k_gives_the_best_of_the_same_hits(folder, settings):
    index = OpenSearchIndex.build(folder, passages(500), settings)
    queries = [Query(str(n), " ".join(pair)) for n, pair in enumerate(pairwise(ANIMALS))]
    wide, narrow = index.retrieve(queries, 400), index.retrieve(queries, 7)
    assert [len(ranking.hits) for ranking in wide] == [400] * len(queries)
    for few, many in zip(narrow, wide, strict=True):
        assert set(few.hits) <= set(many.hits)
        assert [hit.score for hit in few.hits] == [hit.score for hit in many.hits[:7]]


def test_shards_do_not_change_the_ranking(folder, settings):
    queries = [Query(animal, f"{animal} passage 7") for animal in ANIMALS]
    one, three = (
        OpenSearchIndex.build(
            folder.with_name(str(shards)),
            passages(400),
            settings.model_copy(update={"shards": shards, "name": f"{settings.name}-{shards}"}),
        ).retrieve(queries, 400)
        for shards in (1, 3)
    )
    assert [ids(ranking) for ranking in three] == [ids(ranking) for ranking in one]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "\x00\x07",
        'AND OR NOT ( " : * ? ~ ^',
        "{}[]\\/",
        "\u202e\ud83e\udd93",
        "half a character \ud83e",
        "é" * 5000,
    ],
)
def test_any_text_is_a_query(index_of_all_animals, text):
    (ranking,) = index_of_all_animals.retrieve([Query("q", text)], 10)
    assert ranking.hits == ()


def test_a_query_of_thousands_of_words_scores_as_the_sum_of_its_words(index_of_all_animals):
    rng = random.Random(5)
    words = rng.choices(ANIMALS, k=900)
    (half,) = index_of_all_animals.retrieve([Query("q", " ".join(words[:300]))], 20)
    (thrice,) = index_of_all_animals.retrieve([Query("q", " ".join(words[:300] * 9))], 20)
    assert ids(half) == ids(thrice)
    assert [hit.score for hit in thrice.hits] == pytest.approx([9 * hit.score for hit in half.hits])


def test_a_query_of_too_many_different_words_is_searched_by_those_the_index_has(
    index_of_all_animals,
):
    unknown = " ".join(f"w{n}" for n in range(20_000))
    queries = [Query("short", "zebra otter"), Query("long", f"{unknown} zebra otter")]
    short, long = index_of_all_animals.retrieve(queries, 2000)
    assert long.hits == short.hits
    many = " ".join(str(n) for n in range(2000))  # each in one passage, and more than fit a query
    (ranking,) = index_of_all_animals.retrieve([Query("many", many)], 2000)
    assert len(ranking.hits) == 2_000  # each shard takes the 1,000 that it has itself


def test_more_hits_than_the_engine_gives_are_refused(index_of_all_animals):
    with pytest.raises(EngineProblem, match="at most 10,000"):
        index_of_all_animals.retrieve([Query("q", "zebra")], 10_001)


def test_texts_come_back_in_the_order_asked(index_of_all_animals):
    documents = passages(2000)
    wanted = random.Random(3).choices(documents, k=1700)
    assert index_of_all_animals.fetch([document.id for document in wanted]) == wanted
    assert index_of_all_animals.fetch([]) == []


def test_unknown_ids_are_named(index_of_all_animals):
    with pytest.raises(MissingDocument) as caught:
        index_of_all_animals.fetch(["d1", "nobody", "d2", "", "x" * 600])
    assert caught.value.doc_ids == ("nobody", "", "x" * 600)


@pytest.fixture(scope="module")
def index_of_all_animals(three_nodes, tmp_path_factory):
    settings = OpenSearchSettings(urls=three_nodes.urls, name="animals", shards=2)
    return OpenSearchIndex.build(tmp_path_factory.mktemp("animals"), passages(2000), settings)


def test_single_documents_can_be_added_changed_and_removed(folder, settings):
    index = OpenSearchIndex.build(folder, passages(50), settings)
    before = index.card
    index.upsert([Document("new", "a quagga"), Document("d7", "a dodo"), Document("d7", "a moa")])
    quagga, dodo, moa, old = index.retrieve(
        [Query("1", "quagga"), Query("2", "dodo"), Query("3", "moa"), Query("4", "passage 7")], 1
    )
    assert (ids(quagga), ids(dodo), ids(moa)) == (["new"], [], ["d7"])
    assert ids(old) != ["d7"]
    assert index.fetch(["d7"]) == [Document("d7", "a moa")]
    index.delete(["new", "d8"])
    assert index.card.documents == 49
    assert index.card == read_card(folder) == OpenSearchIndex.open(folder).card
    assert index.card.fingerprint != before.fingerprint  # it is no longer that corpus
    with pytest.raises(MissingDocument):
        index.fetch(["d8"])


def test_half_a_character_cannot_be_added(folder, settings):
    index = OpenSearchIndex.build(folder, passages(5), settings)
    with pytest.raises(MalformedInput, match="surrogate"):
        index.upsert([Document("new", "half \ud83e")])


def test_nothing_is_removed_if_one_id_is_unknown(folder, settings):
    index = OpenSearchIndex.build(folder, passages(5), settings)
    with pytest.raises(MissingDocument):
        index.delete(["d1", "nobody"])
    assert index.fetch(["d1"])


def test_a_reindex_serves_the_old_corpus_until_it_is_whole(three_nodes, folder, settings):
    index = OpenSearchIndex.build(folder, passages(3000), settings)
    (first,) = indices(three_nodes, settings.name)
    query = [Query("q", "zebra heron")]
    (before,) = index.retrieve(query, 100)
    served = []

    def look(_):
        served.append((index.retrieve(query, 100)[0], OpenSearchIndex.open(folder).card.documents))

    OpenSearchIndex.build(folder, passages(5000, seed=1), settings, on_acknowledged=look)
    assert len(served) == 3
    assert all(answer == (before, 3000) for answer in served)
    assert index.retrieve(query, 100)[0] != before
    (second,) = indices(three_nodes, settings.name)  # and the old one is gone
    assert second != first


def test_a_document_id_that_comes_twice_is_named_and_nothing_is_served(folder, settings):
    documents = passages(4500)
    with pytest.raises(MalformedInput, match=r"'d5' comes twice, as document 6 and 4,501"):
        OpenSearchIndex.build(folder, [*documents, documents[5]], settings)
    with pytest.raises(IndexProblem, match="is no index"):
        OpenSearchIndex.open(folder)
    assert OpenSearchIndex.build(folder, documents, settings).card.documents == 4500


@pytest.mark.parametrize("doc_id", ["", "x" * 513, "é" * 257])
def test_ids_that_the_engine_cannot_hold_are_refused(folder, settings, doc_id):
    with pytest.raises(EngineProblem, match="cluster takes 1 to 512"):
        OpenSearchIndex.build(folder, [Document("fine", "a"), Document(doc_id, "b")], settings)


def test_ids_of_any_characters_are_kept(folder, settings):
    documents = [
        Document(doc_id, f"zebra {n}")
        for n, doc_id in enumerate(
            ["a b", 'quote"', "back\\slash", "ünï\U0001f993", "new\nline", "x" * 512]
        )
    ]
    index = OpenSearchIndex.build(folder, documents, settings)
    (ranking,) = index.retrieve([Query("q", "zebra")], 10)
    assert sorted(ids(ranking)) == sorted(document.id for document in documents)
    assert index.fetch([document.id for document in documents]) == documents
    index.delete([document.id for document in documents])
    assert index.card.documents == 0


def test_an_empty_corpus_does_not_replace_a_full_one(folder, settings):
    OpenSearchIndex.build(folder, passages(5), settings)
    with pytest.raises(IndexProblem, match="holds no document"):
        OpenSearchIndex.build(folder, [], settings)
    assert OpenSearchIndex.open(folder).card.documents == 5


def test_an_index_that_somebody_else_made_is_left_alone(three_nodes, folder, settings):
    put(three_nodes, f"/{settings.name}", {"mappings": {"properties": {"a": {"type": "long"}}}})
    with pytest.raises(EngineProblem, match="choose another `name`"):
        OpenSearchIndex.build(folder, passages(5), settings)
    other = settings.model_copy(update={"name": f"{settings.name}-alias"})
    put(three_nodes, f"/{settings.name}/_alias/{other.name}", {})
    with pytest.raises(EngineProblem, match="choose another `name`"):
        OpenSearchIndex.build(folder, passages(5), other)
    assert indices(three_nodes, settings.name) == [settings.name]


def test_settings_that_the_cluster_cannot_follow_are_refused_at_once(folder, settings):
    with pytest.raises(EngineProblem, match=r"analyzer \[klingon\]"):
        OpenSearchIndex.build(
            folder, passages(5), settings.model_copy(update={"analyzer": "klingon"})
        )
    with pytest.raises(EngineProblem, match="3 replicas need 4 data nodes"):
        OpenSearchIndex.build(folder, passages(5), settings.model_copy(update={"replicas": 3}))


def test_an_index_that_left_the_cluster_is_missed(three_nodes, folder, settings):
    index = OpenSearchIndex.build(folder, passages(5), settings)
    put(three_nodes, f"/{indices(three_nodes, settings.name)[0]}", None, method="DELETE")
    with pytest.raises(IndexProblem, match="holds no index"):
        OpenSearchIndex.open(folder)
    with pytest.raises(EngineProblem, match="make it anew"):
        index.retrieve([Query("q", "zebra")], 1)
    with pytest.raises(EngineProblem, match="make it anew"):
        index.fetch(["d1"])
    with pytest.raises(IndexProblem):
        index.upsert(passages(1))
    assert indices(three_nodes, settings.name) == []  # no write made an index without our mapping


def test_the_same_adapter_works_on_elasticsearch(elasticsearch, folder):
    settings = OpenSearchSettings(urls=elasticsearch.urls, name="animals", shards=2)
    index = OpenSearchIndex.build(folder, passages(3000), settings)
    documents = passages(3000)
    (ranking,) = index.retrieve([Query("q", "zebra heron")], 1000)
    assert len(ranking.hits) == 1000
    assert index.fetch([document.id for document in documents[:700]]) == documents[:700]
    index.upsert([Document("new", "a quagga")])
    assert ids(index.retrieve([Query("q", "quagga")], 10)[0]) == ["new"]
    index.delete(["new"])
    assert index.retrieve([Query("q", "quagga")], 10)[0].hits == ()
    assert OpenSearchIndex.build(folder, passages(10), settings).card.documents == 10
    with pytest.raises(MalformedInput, match="comes twice"):
        OpenSearchIndex.build(folder, [documents[0], documents[0]], settings)


def put(cluster, path, body, method="PUT"):
    from urllib.request import Request, urlopen

    data = json.dumps(body).encode() if body is not None else None
    request = Request(
        cluster.urls[0] + path, data, {"content-type": "application/json"}, method=method
    )
    with urlopen(request, timeout=10) as answer:
        assert answer.status == 200
