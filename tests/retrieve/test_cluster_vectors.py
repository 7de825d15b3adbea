"""Vectors on a cluster: what is asked of it, and a real one with OpenSearch's k-NN plugin."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

import tiny
from fake_cluster import NAME, Node, folder_of, listening
from opensearch_cluster import FULL_OPENSEARCH, Cluster, Unavailable
from secondlook.cli import app
from secondlook.data import read_run
from secondlook.errors import EngineProblem, IndexProblem, MissingDocument
from secondlook.retrieve.cluster import VectorField
from secondlook.retrieve.cluster_vectors import ClusterVectors, as_json, vector_field
from secondlook.retrieve.hybrid import HybridIndex
from secondlook.retrieve.load import _add_vectors
from secondlook.retrieve.lucene import msearch
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.retrieve.vector_files import VectorCard, write_vector_card
from secondlook.types import Document, Hit, Query, Ranking
from secondlook.workflows.open_index import open_index

if TYPE_CHECKING:
    from collections.abc import Iterator

DIMENSION = 16
QUERIES = [Query("1", "okapi zebra"), Query("2", "heron")]


class Rows:
    """Vectors by position, as stored rows give them."""

    def __init__(self, count: int, seed: int = 0) -> None:
        rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def read(self, chosen):
        return self.rows[chosen]


def card(made_by="sha256:r") -> VectorCard:
    return VectorCard(
        ranker="tiny",
        source="s",
        fingerprint=made_by,
        dimension=DIMENSION,
        documents=1,
        rows=1,
        corpus="c",
        stored="cluster",
    )


class Asking:
    """An index that says what it was asked, and gives every search the same hits."""

    name = "things"

    def __init__(self, *hits: Hit) -> None:
        self.hits, self.requests = hits, []

    def ask(self, searches, k):
        self.requests.append((list(searches), k))
        return [Ranking.of(one.query.id, self.hits) for one in searches]


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
def test_words_and_vectors_of_a_query_go_in_one_request(product):
    index, vectors = Asking(Hit("d", 0.75)), Rows(2).rows
    words, near = ClusterVectors(index, card(), product).retrieve_both(QUERIES, vectors, 10)
    ((searches, k),) = index.requests
    assert k == 10
    assert [one.query.id for one in searches] == ["1", "1", "2", "2"]
    assert [one.words for one in searches] == [True, False] * 2
    assert [ranking.hits[0].score for ranking in words] == [0.75, 0.75]
    assert [ranking.hits[0].score for ranking in near] == [0.5, 0.5]  # (1 + cosine) / 2
    lines = [json.loads(line) for line in msearch(searches, k, of_all_shards=True).splitlines()]
    headers, bodies = lines[::2], lines[1::2]
    assert [header.get("search_type") for header in headers] == [
        "dfs_query_then_fetch",
        None,  # which Elasticsearch refuses beside k-NN
    ] * 2
    told = (
        bodies[1]["query"]["knn"]["vector"]["vector"]
        if product == "opensearch"
        else (bodies[1]["knn"]["query_vector"])
    )
    assert told == pytest.approx(vectors[0], abs=1e-7)
    assert bodies[0]["query"] == {"match": {"contents": "okapi zebra"}}


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
def test_cosines_of_candidates_come_in_the_order_asked(product):
    index = Asking(Hit("a", 1.5), Hit("b", 0.25))
    vectors = ClusterVectors(index, card(), product)
    (found,) = vectors.similarities(Rows(1).rows, [["b", "a"]])
    assert found.rows == pytest.approx([-0.75, 0.5])  # the script gives 1 + cosine
    with pytest.raises(MissingDocument, match="'c'"):
        vectors.similarities(Rows(1).rows, [["a", "c"]])


class Answering:
    """A cluster that says what it is."""

    def __init__(self, version, plugins=()):
        self.version, self.plugins = version, plugins

    def ask(self, _method, path, **_):
        if path == "/":
            return {"version": self.version}
        return {"nodes": {"n": {"plugins": [{"name": name} for name in self.plugins]}}}


def test_each_product_gets_its_own_mapping():
    def body():
        return {
            "settings": {},
            "mappings": {"properties": {}, "_source": {"excludes": ["contents"]}},
        }

    field = VectorField(dimension=DIMENSION, made_by="r")
    opensearch, elastic = body(), body()
    _add_vectors(opensearch, Answering({"distribution": "opensearch"}, ["opensearch-knn"]), field)
    _add_vectors(elastic, Answering({"number": "8.12.0"}), field)
    assert opensearch["settings"] == {"knn": True}
    assert opensearch["mappings"]["properties"]["vector"]["type"] == "knn_vector"
    assert elastic["settings"] == {}
    assert elastic["mappings"]["properties"]["vector"]["dims"] == DIMENSION
    assert opensearch["mappings"]["_source"]["excludes"] == ["contents", "vector"]
    with pytest.raises(EngineProblem, match="no k-NN plugin"):
        _add_vectors(body(), Answering({"distribution": "opensearch"}, ["other"]), field)


def test_too_many_dimensions_are_refused_before_anything_is_sent():
    with pytest.raises(EngineProblem, match="1,025 dimensions"):
        vector_field("opensearch", 1025)


def test_what_no_load_could_begin_with_is_told_before_vectors_are_made(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    with listening() as node:
        settings = OpenSearchSettings(urls=(node.url,), name=NAME, discover=False)
        copied, folder = settings.model_copy(update={"replicas": 3}), tmp_path / "index"
        OpenSearchIndex.prepare(folder, settings, DIMENSION)
        with pytest.raises(EngineProblem, match="1,025 dimensions"):
            OpenSearchIndex.prepare(folder, settings, 1025)
        with pytest.raises(EngineProblem, match="3 replicas need 4 data nodes"):
            OpenSearchIndex.prepare(folder, copied, DIMENSION)
        monkeypatch.setattr(node, "reply", lambda path: foreign(path) or Node.reply(node, path))
        with pytest.raises(EngineProblem, match="choose another `name`"):
            OpenSearchIndex.prepare(folder, settings, DIMENSION)
        assert not any("-loading" in path for path, _ in node.asked)
        (folder / "corpus.sqlite").touch()
        with pytest.raises(IndexProblem, match="holds something else"):
            OpenSearchIndex.prepare(folder, settings, DIMENSION)
    with pytest.raises(EngineProblem, match="cannot reach the cluster"):
        OpenSearchIndex.prepare(tmp_path / "other", settings, DIMENSION)


def foreign(path):
    """An index of that name that something else made."""
    return {NAME: {"aliases": {}, "mappings": {}}} if path.startswith(f"/{NAME},") else None


def passages(number: int) -> list[Document]:
    return [
        Document(f"d{n}", f"passage {n} of the okapi", "zebra" if n % 2 else "")
        for n in range(number)
    ]


def with_vectors(cluster, name, **options) -> OpenSearchSettings:
    field = VectorField(dimension=DIMENSION, made_by="sha256:r")
    return OpenSearchSettings(urls=cluster.urls, name=name, vectors=field, **options)


def ids(ranking):
    return [hit.doc_id for hit in ranking.hits]


@pytest.fixture
def one_with_knn() -> Iterator[Cluster]:
    try:
        cluster = Cluster(1, FULL_OPENSEARCH.with_plugins("opensearch-knn"))
    except Unavailable as reason:
        pytest.skip(str(reason))
    with cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.real
def test_a_real_cluster_finds_the_nearest(one_with_knn, tmp_path):
    rows, documents = Rows(200), passages(200)
    index = OpenSearchIndex.build(
        tmp_path / "index", documents, with_vectors(one_with_knn, "near"), vectors=rows
    )
    query = Rows(1, seed=5).rows
    cosines = rows.rows @ query[0]
    vectors = OpenSearchIndex.open(tmp_path / "index").vector_search(card())
    words, near = vectors.retrieve_both([Query("q", "zebra 7")], query, 10)
    assert ids(near[0]) == [f"d{place}" for place in np.argsort(-cosines)[:10]]
    assert near[0].hits[0].score == pytest.approx(float(cosines.max()), abs=1e-5)
    assert words == index.retrieve([Query("q", "zebra 7")], 10)
    (same,) = vectors.similarities(query, [["d7", "d3", "d199"]])
    assert same.rows == pytest.approx(cosines[[7, 3, 199]], abs=1e-5)
    assert index.fetch(["d3"]) == [documents[3]]  # without its vector
    with pytest.raises(EngineProblem, match="secondlook add"):
        index.upsert([Document("new", "text")])
    index.upsert([Document("new", "text")], lambda some: [query[0] for _ in some])
    assert ids(vectors.retrieve([Query("q", "")], query, 1)[0]) == ["new"]
    with pytest.raises(IndexProblem, match="holds no vectors of tiny"):
        index.vector_search(card("sha256:another"))


@pytest.mark.slow
@pytest.mark.real
def test_the_command_line_makes_both_on_a_cluster(one_with_knn, tmp_path, monkeypatch):
    """`index --engine opensearch --vectors`, `retrieve --by`; then vectors of it, attached."""
    monkeypatch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
    texts = {f"d{n}": " ".join("abcdefghij"[n : n + 3]) for n in range(8)}
    lines = [json.dumps({"_id": key, "text": text}) for key, text in texts.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a b"}\n')
    base = tiny.save(tiny.encoder(), tmp_path / "base")

    def run(*words):
        done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    def found(index, by):
        run_file = tmp_path / f"{by}.trec"
        run("retrieve", index, tmp_path / "queries.jsonl", "--by", by, "-k", 8, "-o", run_file)
        (ranking,) = read_run(run_file)
        run_file.unlink()
        return ranking

    url = one_with_knn.urls[0]
    on_cluster, here, attached = (tmp_path / name for name in ("knn", "here", "attached"))
    run("index", tmp_path / "corpus.jsonl", on_cluster, "--engine", "opensearch", "--url", url,
        "--vectors", base)  # fmt: skip
    run("index", tmp_path / "corpus.jsonl", here, "--vectors", base)
    assert set(ids(found(on_cluster, "bm25"))) == {"d0", "d1"}
    for by in ("vectors", "hybrid"):
        same = found(here, by)
        assert ids(found(on_cluster, by)) == ids(same)
        assert len(same.hits) == 8
    before = one_with_knn.get(0, "/knn/_stats/indexing")["_all"]["total"]["indexing"]
    (tmp_path / "query.json").write_text('{"query": {"match": {"contents": "{{query}}"}}}')
    given = "--text", "{{text}}", "--query", tmp_path / "query.json"
    run("attach", attached, "--url", url, "--index", "knn", *given)
    run("index", attached, attached, "--vectors", base)
    assert ids(found(attached, "vectors")) == ids(found(here, "vectors"))
    after = one_with_knn.get(0, "/knn/_stats/indexing")["_all"]["total"]["indexing"]
    assert after == before  # nothing was written there


@pytest.fixture
def three_with_knn() -> Iterator[Cluster]:
    try:
        cluster = Cluster(3, FULL_OPENSEARCH.with_plugins("opensearch-knn"))
    except Unavailable as reason:
        pytest.skip(str(reason))
    with cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.real
def test_no_acknowledged_vector_is_lost_with_a_node(three_with_knn, tmp_path):
    """A load of 50,000 vectors with a replica, one node killed in the middle of it."""
    total, acknowledged, killed = 50_000, [], threading.Event()

    def count(doc_ids):
        acknowledged.extend(doc_ids)
        if len(acknowledged) > total // 3 and not killed.is_set():
            killed.set()
            threading.Thread(target=three_with_knn.kill, args=(2,)).start()

    rows = Rows(total)
    settings = with_vectors(three_with_knn, "many", shards=3, replicas=1)
    index = OpenSearchIndex.build(
        tmp_path / "index", passages(total), settings, vectors=rows, on_acknowledged=count
    )
    assert killed.is_set()
    assert len(set(acknowledged)) == total
    vectors = index.vector_search(card())
    asked = np.random.default_rng(1).choice(total, 300, replace=False)
    for place in asked.tolist():  # each is found by its own vector, with a cosine of 1
        (own,) = vectors.similarities(rows.rows[place : place + 1], [[f"d{place}"]])
        assert own.rows == pytest.approx([1.0], abs=1e-4)
    assert index.card.documents == total


def test_an_index_that_is_filled_anew_without_vectors_has_none_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    with listening() as node:
        folder = folder_of(tmp_path / "index", node.url)
        (folder / "vectors").mkdir()
        write_vector_card(folder / "vectors", card())
        documents = [Document(f"d{n}", "text") for n in range(3)]
        settings = OpenSearchSettings(urls=(node.url,), name=NAME, discover=False)
        OpenSearchIndex.build(folder, documents, settings)
        assert not isinstance(open_index(folder).engine, HybridIndex)
    assert [path.name for path in folder.iterdir()] == ["index.json"]


def test_vectors_are_sent_with_the_digits_that_count():
    assert as_json(np.array([1 / 3], np.float32)) == [0.33333334]
