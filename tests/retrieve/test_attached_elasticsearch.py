"""An attached index on a real Elasticsearch with TLS and users, by a user who may only read it."""

from __future__ import annotations

import json

import pytest

import secondlook as sl
from foreign_index import STORED, TEMPLATES, load, move, products, writes
from opensearch_security import SHOPPER
from secondlook.errors import EngineProblem
from secondlook.retrieve import attached as engine
from secondlook.types import Query

pytestmark = pytest.mark.real

COUNT = 300


@pytest.fixture(scope="module")
def shop(secured_elasticsearch):
    load(secured_elasticsearch, "products-1", products(COUNT), shards=2)
    secured_elasticsearch.send(0, "PUT", "/_scripts/shop-search", STORED)
    return secured_elasticsearch


@pytest.fixture(autouse=True)
def shopper(shop, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(shop._security.authority.certificate))
    for name, value in SHOPPER.environment.items():
        monkeypatch.setenv(name, value)


def attached(shop, folder, **given):
    given = {"text": "{{description}}", "title": "{{name}}", **given}
    return sl.attach_index(folder, url=shop.urls[0], index="products", replace=True, **given)


@pytest.mark.parametrize("shape", [*TEMPLATES, "stored"])
def test_scores_are_those_of_the_same_body_sent_raw(shop, tmp_path, shape):
    given = {"template": "shop-search"} if shape == "stored" else {"query": TEMPLATES[shape]}
    index = attached(shop, tmp_path / "i", **given).index
    body = STORED["script"]["source"] if shape == "stored" else TEMPLATES[shape]
    queries = [Query(thing, f"red {thing}") for thing in ("kettle", "lamp", "boot", "tent")]
    for ranking, query in zip(index.engine.retrieve(queries, 20), queries, strict=True):
        raw = json.loads(json.dumps(body["query"]).replace("{{query}}", query.text))
        sent = shop.send(0, "POST", "/products/_search", {"query": raw, "size": 20})
        hits = sent["hits"]["hits"]
        assert [hit.score for hit in ranking.hits] == [hit["_score"] for hit in hits]


def test_a_user_who_may_only_read_does_everything_else_too(shop, tmp_path, monkeypatch, caplog):
    before = writes(shop, "products")
    made = attached(shop, tmp_path / "i", query=TEMPLATES["boosts"])
    index = made.index
    acme = index.retrieve(["lamp"], k=50, filters=[{"term": {"brand": "acme"}}])
    known = dict(products(COUNT))
    assert {known[hit.doc_id]["brand"] for hit in acme[0].hits} == {"acme"}
    query = [Query("q", "kettle lamp boot tent radio saw clock chair")]
    (whole,) = index.engine.retrieve(query, 10_000)
    monkeypatch.setattr(engine, "_MOST_HITS", 100)
    monkeypatch.setattr(engine, "_PAGE", 64)
    (deep,) = index.engine.retrieve(query, 10_000)
    assert deep == whole
    assert len(whole.hits) == COUNT
    assert {document.id for document in index.engine.documents()} == set(known)
    assert "may not read the mapping" in made.summary()
    load(shop, "products-2", products(10))
    try:
        assert index.retrieve(["kettle lamp boot tent"], k=50)
        assert "it stands for products-2, before for products-1" in caplog.text
    finally:
        move(shop, "products-1")
        shop.send(0, "DELETE", "/products-2")
    assert writes(shop, "products") == before


def test_an_api_key_is_enough(shop, tmp_path, monkeypatch):
    read = {"shop": {"indices": [{"names": ["products*"], "privileges": ["read"]}]}}
    body = {"name": "secondlook", "role_descriptors": read}
    key = shop.send(0, "POST", "/_security/api_key", body)["encoded"]
    monkeypatch.delenv("OPENSEARCH_USERNAME")
    monkeypatch.delenv("OPENSEARCH_PASSWORD")
    monkeypatch.setenv("OPENSEARCH_API_KEY", key)
    assert attached(shop, tmp_path / "i").hits
    assert key not in (tmp_path / "i" / "index.json").read_text()


def test_a_clause_that_this_engine_lacks_is_refused_with_its_own_reason(shop, tmp_path):
    body = {"query": {"neural": {"description": {"query_text": "{{query}}"}}}}
    with pytest.raises(EngineProblem, match=r"unknown query \[neural\]"):
        attached(shop, tmp_path / "i", query=body)
