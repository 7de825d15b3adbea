"""An attached index on a real cluster with TLS and users, by a user who may only read it."""

from __future__ import annotations

import hashlib
import json
import logging
import ssl
import urllib.error

import pytest

import secondlook as sl
from command_line import in_process, secondlook
from foreign_index import STORED, TEMPLATES, load, move, products, writes
from opensearch_security import ADMIN, CLERK, SHOPPER
from secondlook.errors import EngineProblem, IndexProblem, VanishedDocuments
from secondlook.retrieve import open_updatable
from secondlook.retrieve.folder import read_card
from secondlook.retrieve.search_options import SearchOptions
from secondlook.types import Query

pytestmark = pytest.mark.real

COUNT = 600
TEXT, TITLE = "{{description}} {{#attributes}}{{name}} {{value}}{{/attributes}}", "{{name}}"


@pytest.fixture(scope="module")
def shop(secured):
    """A cluster with a shop's index behind an alias; its owner wrote it by plain HTTP."""
    load(secured, "products-1", products(COUNT), shards=2)
    secured.send(0, "PUT", "/_scripts/shop-search", STORED)
    yield secured
    secured.send(0, "DELETE", "/products-*")


@pytest.fixture(autouse=True)
def sign_in(security, monkeypatch, tmp_path):
    """Who asks from now on: at first somebody who may only read that index."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(security.authority.certificate))

    def as_user(user, **changes):
        for name, value in {**user.environment, **changes}.items():
            monkeypatch.setenv(name, value)

    as_user(SHOPPER)
    return as_user


def attached(shop, tmp_path, **given):
    given = {"text": TEXT, "title": TITLE, "query": TEMPLATES["boosts"], **given}
    return sl.attach_index(
        tmp_path / "index", url=shop.urls[0], index="products", replace=True, **given
    )


def ids(run):
    return [hit.doc_id for ranking in run for hit in ranking.hits]


def test_a_user_who_may_only_read_attaches_searches_and_writes_nothing(shop, tmp_path, caplog):
    before = writes(shop, "products")
    made = sl.attach_index(tmp_path / "index", url=shop.urls[0], index="products")
    assert (made.settings.title, made.settings.id) == ("{{name}}", "_id")
    assert made.settings.text.startswith("{{description}}")
    assert made.settings.signals == ("price", "released")
    assert made.hits
    said = made.summary()
    assert "600 documents" in said
    assert "may not read the mapping" in said
    assert all(document.title in said for document in made.documents)
    with sl.open_index(tmp_path / "index") as index:
        run = index.retrieve(["sturdy kettle", "warm boot"], k=20)
        assert [len(ranking.hits) for ranking in run] == [20, 20]
        (first, *_) = index.fetch(ids(run)[:1])
        assert "kettle" in first.title + first.text
        assert set(index.signals([first.id])[0]) == {"price", "released"}
        assert len(list(index.engine.documents())) == len(index) == COUNT
        acme = index.retrieve(["lamp"], k=50, filters=[{"term": {"brand": "acme"}}])
        brands = {dict(products(COUNT))[doc_id]["brand"] for doc_id in ids(acme)}
        assert brands == {"acme"}
        index.verify()
    assert writes(shop, "products") == before
    assert "has changed" not in caplog.text
    with pytest.raises(IndexProblem, match="secondlook only reads it"):
        open_updatable(tmp_path / "index")
    with pytest.raises(urllib.error.HTTPError, match="403"):  # not even by force
        as_shopper(shop, "PUT", "/products/_doc/new", {"name": "a new one"})
    assert writes(shop, "products") == before


def as_shopper(cluster, method, path, body):
    from base64 import b64encode
    from urllib.request import Request, urlopen

    secret = b64encode(f"{SHOPPER.name}:{SHOPPER.password}".encode()).decode()
    headers = {"authorization": f"Basic {secret}", "content-type": "application/json"}
    request = Request(cluster.urls[0] + path, json.dumps(body).encode(), headers, method=method)
    context = ssl.create_default_context(cafile=cluster._security.authority.certificate)
    with urlopen(request, timeout=10, context=context) as answer:
        return json.load(answer)


QUERIES = [
    Query(str(number), " ".join(source["name"].split()[:2] + source["tags"]))
    for number, (_, source) in enumerate(products(100, seed=1))
]


@pytest.mark.parametrize("shape", [*TEMPLATES, "stored"])
def test_scores_and_order_are_those_of_the_same_body_sent_raw(shop, tmp_path, sign_in, shape):
    sign_in(ADMIN)
    query = {"template": "shop-search"} if shape == "stored" else {"query": TEMPLATES[shape]}
    index = attached(shop, tmp_path, **{"query": None, **query}).index
    body = STORED["script"]["source"] if shape == "stored" else TEMPLATES[shape]
    text = json.dumps({"query": body["query"], "size": 25})
    raw = "".join(f"{{}}\n{text.replace('{{query}}', query.text)}\n" for query in QUERIES)
    sent = shop.send(0, "POST", "/products/_msearch", raw, timeout=60)["responses"]
    for ranking, answer in zip(index.engine.retrieve(QUERIES, 25), sent, strict=True):
        hits = answer["hits"]["hits"]
        assert [hit.score for hit in ranking.hits] == [hit["_score"] for hit in hits]
        by_score = sorted(((hit["_score"], hit["_id"]) for hit in hits), reverse=True)
        last = hits[-1]["_score"]  # which of equal documents come last is the cluster's choice
        assert [(hit.score, hit.doc_id) for hit in ranking.hits if hit.score > last] == [
            (score, doc_id) for score, doc_id in by_score if score > last
        ]


def test_an_alias_that_moves_is_followed_and_said(shop, tmp_path, caplog):
    index = attached(shop, tmp_path).index
    before = index.card.fingerprint
    copy = [
        (doc_id, {**source, "name": f"new {source['name']}"}) for doc_id, source in products(50)
    ]
    load(shop, "products-2", copy)
    try:
        caplog.clear()
        run = index.retrieve(["new kettle"], k=50)
        assert all(document.title.startswith("new") for document in index.fetch(ids(run)))
        assert "50 documents, before 600; it stands for products-2, before for products-1" in (
            caplog.text
        )
        assert (len(index), index.card.fingerprint != before) == (50, True)
        caplog.clear()
        sl.open_index(tmp_path / "index")
        assert "has changed since it was attached: 50 documents, before 600" in caplog.text
        with pytest.raises(IndexProblem, match="is not as it was attached"):
            index.verify()
    finally:
        move(shop, "products-1")
        shop.send(0, "DELETE", "/products-2")


def test_an_alias_that_moves_to_an_index_without_the_texts_is_an_error(shop, tmp_path):
    index = attached(shop, tmp_path, text="{{description}}").index
    load(
        shop,
        "products-3",
        [("a", {"name": "a lamp"})],
        mapping={"properties": {"name": {"type": "text"}}},
    )
    try:
        with pytest.raises(
            IndexProblem, match=r"no longer has description.*attach the index again"
        ):
            index.retrieve(["lamp"])
    finally:
        move(shop, "products-1")
        shop.send(0, "DELETE", "/products-3")


def test_a_document_that_vanished_between_the_looks_is_left_out(shop, tmp_path):
    from secondlook.rank.present import fetch_present, still_there

    load(shop, "products-4", products(30), alias=None)
    made = sl.attach_index(tmp_path / "i", url=shop.urls[0], index="products-4", text=TEXT)
    (ranking,) = made.index.engine.retrieve([Query("q", "kettle lamp boot tent")], 30)
    gone = ranking.hits[0].doc_id
    shop.send(0, "DELETE", f"/products-4/_doc/{gone}?refresh=true")
    with pytest.raises(VanishedDocuments) as said:
        made.index.fetch([hit.doc_id for hit in ranking.hits])
    assert said.value.doc_ids == (gone,)
    found = fetch_present(made.index.engine, [hit.doc_id for hit in ranking.hits])
    assert [hit.doc_id for hit in still_there(ranking, found).hits] == [
        hit.doc_id for hit in ranking.hits[1:]
    ]
    shop.send(0, "DELETE", "/products-4")


def test_depths_beyond_one_answer_are_read_in_pages(shop, tmp_path, monkeypatch):
    from secondlook.retrieve import attached as engine

    monkeypatch.setattr(engine, "_MOST_HITS", 100)
    monkeypatch.setattr(engine, "_PAGE", 64)
    index = attached(shop, tmp_path).index
    query = [Query("q", "kettle lamp boot tent radio saw clock chair")]
    (deep,) = index.engine.retrieve(query, 10_000)
    monkeypatch.setattr(engine, "_MOST_HITS", 10_000)
    (whole,) = index.engine.retrieve(query, 10_000)
    assert len(whole.hits) == COUNT
    assert deep == whole
    shop.send(0, "PUT", "/products-1/_settings", {"index.max_result_window": 500})
    try:
        assert index.engine.retrieve(query, 10_000) == [whole]  # its owner allows less
    finally:
        shop.send(0, "PUT", "/products-1/_settings", {"index.max_result_window": None})


def test_a_field_that_the_user_may_not_see_is_named(shop, tmp_path, sign_in, caplog):
    sign_in(ADMIN)
    attached(shop, tmp_path, text="{{description}}")
    attached(shop, tmp_path / "both", text="{{name}} {{description}}")
    sign_in(CLERK)
    with pytest.raises(IndexProblem, match="has no field 'description', or this user may not read"):
        attached(shop, tmp_path / "other", text="{{description}}")
    with pytest.raises(IndexProblem, match=r"no longer has description, or this user may not read"):
        sl.open_index(tmp_path / "index")
    sl.open_index(tmp_path / "both" / "index")
    assert "gone, or hidden from this user: description" in caplog.text


def test_ids_may_be_a_field(shop, tmp_path):
    made = attached(shop, tmp_path, id="sku")
    run = made.index.retrieve(["kettle"], k=5)
    assert all(doc_id.startswith("SKU-") for doc_id in ids(run))
    assert [document.id for document in made.index.fetch(ids(run))] == ids(run)


def test_refusals_say_what_to_do_and_no_secret(shop, tmp_path, sign_in, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    complaints = []

    def refused(match, **given):
        with pytest.raises((EngineProblem, IndexProblem), match=match) as said:
            attached(shop, tmp_path, **given)
        complaints.append(str(said.value))

    refused("unknown query .mtch", query={"query": {"mtch": {"name": "{{query}}"}}})
    refused(r"forbids this.*the right to read this index", template="shop-search", query=None)
    with monkeypatch.context() as other:
        other.setenv("OPENSEARCH_PASSWORD", "gu3ssed")
        refused("refused the credentials: set OPENSEARCH_USERNAME")
    with pytest.raises(EngineProblem, match=r"forbids this|has no such index"):
        sl.attach_index(tmp_path / "i", url=shop.urls[0], index="animals")
    url = shop.urls[0].replace("127.0.0.1", "localhost")
    with pytest.raises(EngineProblem, match="the host as the certificate does"):
        sl.attach_index(tmp_path / "i", url=url, index="products")
    assert not (tmp_path / "index").exists()
    attached(shop, tmp_path).index.retrieve(["kettle"])
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (SHOPPER.password, "gu3ssed"):
        assert secret not in written + caplog.text + "".join(complaints)


def test_a_pinned_certificate_needs_no_authority(shop, security, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENSEARCH_CA_CERTS")
    der = ssl.PEM_cert_to_DER_cert(security.certificate.read_text())
    pin = hashlib.sha256(der).hexdigest()
    monkeypatch.setenv(
        "OPENSEARCH_CERT_FINGERPRINT", ":".join(pin[n : n + 2] for n in range(0, 64, 2)).upper()
    )
    assert attached(shop, tmp_path).index.retrieve(["kettle"], k=3)
    monkeypatch.setenv("OPENSEARCH_CERT_FINGERPRINT", pin[::-1])
    with pytest.raises(EngineProblem, match=rf"not a pinned one, its SHA-256 is {pin}.*renewed"):
        attached(shop, tmp_path)


def test_the_verbs_work_on_it_and_show_no_secret(shop, tmp_path):
    folder = tmp_path / "index"
    body = tmp_path / "body.json"
    body.write_text(json.dumps({
        "query": {"bool": {
            "must": {"match": {"name": "{{query}}"}}, "filter": {"terms": {"brand": "{{brands}}"}},
        }}
    }))  # fmt: skip
    said = secondlook(
        "attach", folder, "--url", shop.urls[0], "--index", "products", "--query", body,
        "--param", 'brands=["acme", "globex"]', "--title", TITLE, "--text", TEXT,
    )  # fmt: skip
    assert "parameters   brands" in said
    assert "documents as a re-ranker reads them" in said
    term = '{"range": {"price": {"lt": 50}}}'
    hits = json.loads(
        in_process(
            "search", folder, "kettle", "--json", "--filter", term, "--param", 'brands=["acme"]'
        )
    )
    known = dict(products(COUNT))
    assert hits
    assert {known[hit["id"]]["brand"] for hit in hits} == {"acme"}
    assert all(known[hit["id"]]["price"] < 50 for hit in hits)
    assert "did you mean 'brands'" in in_process(
        "search", folder, "kettle", "--param", "brand=acme", fails=True
    )
    assert "only reads it" in in_process("remove", folder, "p1", fails=True)
    assert "600 documents, attached" in in_process("doctor", "--index", folder)
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert SHOPPER.password not in written + said
    assert read_card(folder).settings["name"] == "products"


def test_a_server_passes_filters_through_and_follows_the_alias(shop, tmp_path):
    import httpx

    import tiny
    from secondlook.serve.index import ServedIndex
    from secondlook.serve.serving import Serving
    from served import listening

    query = {
        "query": {
            "bool": {
                "must": {"match": {"name": "{{query}}"}},
                "should": {"term": {"brand": {"value": "{{brand}}", "boost": 9}}},
            }
        }
    }
    attached(shop, tmp_path, query=query, parameters={"brand": "acme"})
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    ranker = sl.Ranker.from_biencoder(str(base), device="cpu")
    served = ServedIndex.at(tmp_path / "index")
    known = dict(products(COUNT))
    with listening(Serving({"tiny": "tiny"}, lambda _: ranker, index=served)) as url:
        info = httpx.get(f"{url}/info").json()
        assert (info["engine"], info["search_parameters"]) == ("attached", ["brand"])

        def search(**given):
            asked = {"query": "kettle", "k": 20, "depth": 20, **given}
            return httpx.post(f"{url}/v1/search", json=asked, timeout=60)

        hits = search(filters=[{"term": {"brand": "globex"}}]).json()["hits"]
        assert hits
        assert {known[hit["id"]]["brand"] for hit in hits} == {"globex"}
        first = search(parameters={"brand": "umbrella"}, depth=5).json()["hits"]
        assert known[min(first, key=lambda hit: hit["first_rank"])["id"]]["brand"] == "umbrella"
        for wrong, said in (
            ({"filters": [{"script": {"script": "1"}}]}, "filters of this server are"),
            ({"parameters": {"colour": "red"}}, "no parameter of the query template 'colour'"),
            ({"filters": [{"term": {"brand": {"valeu": 1}}}]}, "valeu"),
        ):
            answer = search(**wrong)
            assert (answer.status_code, said in answer.text) == (422, True)
        assert search().status_code == 200  # callers' mistakes do not close the engine
        load(shop, "products-5", [(f"new{n}", row) for n, (_, row) in enumerate(products(40))])
        try:  # the alias has moved to a copy with other ids
            moved = search().json()["hits"]
            assert moved
            assert all(hit["id"].startswith("new") for hit in moved)
            shop.send(0, "DELETE", f"/products-5/_doc/{moved[0]['id']}?refresh=true")
            assert moved[0]["id"] not in {hit["id"] for hit in search().json()["hits"]}
        finally:
            move(shop, "products-1")
            shop.send(0, "DELETE", "/products-5")
        assert search().status_code == 200


def test_options_are_refused_by_engines_that_take_none(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "a kettle"}\n')
    index = sl.build_index(tmp_path / "corpus.jsonl", tmp_path / "bm25")
    with pytest.raises(sl.SecondlookError, match="are for attached indexes"):
        index.retrieve(["kettle"], filters=[{"term": {"a": 1}}])
    assert index.retrieve(["kettle"]) == index.retrieve(["kettle"], filters=[])
    assert SearchOptions.of({"term": {"a": 1}}).filters == ({"term": {"a": 1}},)
