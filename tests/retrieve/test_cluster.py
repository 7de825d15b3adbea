"""What the cluster engine says and sends, with a transport that plays the cluster."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy import exceptions
from pydantic import ValidationError

from secondlook.analyze import ANALYZERS
from secondlook.analyze.words import WordAnalyzer
from secondlook.data.fingerprint import Fingerprint
from secondlook.errors import EngineProblem, MalformedInput, UnknownName
from secondlook.retrieve.access import Route
from secondlook.retrieve.bulk import Write, batches, cut, in_parallel, send
from secondlook.retrieve.cluster import ASKING, LOADING, Cluster, OpenSearchSettings, RetryPolicy
from secondlook.retrieve.load import IndexMetadata, Load, _on_cluster
from secondlook.retrieve.opensearch import OpenSearchIndex
from secondlook.types import Document

ROUTE = Route(("http://cluster.test:9200",))


class FakeTransport:
    """Answers from a list: what to raise, or what to return."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def perform_request(self, method, path, **options):
        self.requests.append((method, path, options))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def cluster_of(*answers, retries=5):
    waits = []
    transport = FakeTransport(*answers)
    patience = RetryPolicy(retries=retries)
    cluster = Cluster(ROUTE, transport, patience, waits.append, random.Random(0))
    return cluster, transport, waits


def lost():
    return exceptions.ConnectionError("N/A", "Connection refused", OSError())


def status(code, kind="some_exception", reason="because"):
    error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
    return exceptions.TransportError(code, kind, {"error": error, "status": code})


def items(*statuses):
    answer = [
        {"create": {"status": s} | ({"error": {"type": "e", "reason": "r"}} if s >= 400 else {})}
        for s in statuses
    ]
    return {"errors": any(s >= 400 for s in statuses), "items": answer}


def sent_ids(request):
    body = request[2]["body"].decode().splitlines()
    return [json.loads(line)["create"]["_id"] for line in body[::2]]


def writes(*ids):
    return [Write("create", doc_id, b'{"position":%d}' % n) for n, doc_id in enumerate(ids)]


@pytest.mark.parametrize("refusal", [lost(), status(429), status(503), status(502)])
def test_a_busy_cluster_is_asked_again_after_longer_and_longer_waits(refusal):
    cluster, transport, waits = cluster_of(refusal, refusal, refusal, {"fine": True})
    assert cluster.ask("GET", "/_cluster/health") == {"fine": True}
    assert len(transport.requests) == 4
    assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits))


def test_patience_ends_with_the_reason():
    cluster, transport, waits = cluster_of(*[lost()] * 3, retries=2)
    with pytest.raises(
        EngineProblem, match=r"cannot reach the cluster at http://cluster.test:9200"
    ):
        cluster.ask("GET", "/")
    assert (len(transport.requests), len(waits)) == (3, 2)


def test_a_refusal_that_waiting_cannot_cure_is_final():
    cluster, transport, _ = cluster_of(status(400, "parsing_exception", "unknown key"))
    with pytest.raises(EngineProblem, match="parsing_exception: unknown key"):
        cluster.ask("GET", "/")
    assert len(transport.requests) == 1


def test_a_request_of_a_limit_of_its_own_says_that_limit():
    cluster, transport, _ = cluster_of(exceptions.ConnectionTimeout("TIMEOUT", "slow", OSError()))
    with pytest.raises(EngineProblem, match=r"did not answer within 1\.5 s"):
        cluster.request("GET", "/", within=1.5)
    assert transport.requests[0][2]["timeout"] == 1.5


def test_an_index_made_in_the_folder_one_is_in_is_called_like_that_folder(tmp_path, monkeypatch):
    (tmp_path / "things").mkdir()
    monkeypatch.chdir(tmp_path / "things")
    assert OpenSearchIndex.options(Path()).name == "things"


def test_loading_outlasts_a_restart_and_asking_does_not_keep_a_person_waiting():
    assert 120 < sum(LOADING.waits(random.Random(0))) < 300
    assert max(LOADING.waits(random.Random(0))) <= 30
    assert sum(ASKING.waits(random.Random(0))) < 3


def test_giving_up_ends_the_waiting_in_other_threads():
    cluster = Cluster(ROUTE, FakeTransport(*[lost()] * 99), RetryPolicy(retries=50, first=60.0))
    failed = threading.Event()

    def load():
        with pytest.raises(EngineProblem):
            cluster.ask("GET", "/")
        failed.set()

    thread = threading.Thread(target=load)
    thread.start()
    cluster.give_up()
    assert failed.wait(5)
    thread.join()


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (status(401), "set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD, or OPENSEARCH_API_KEY"),
        (status(403), "give the user or key the right"),
        (status(404), "make it anew"),
        (status(413), "http.max_content_length"),
        (status(503, "no_shard_available_action_exception"), "bring the missing nodes back"),
        (exceptions.ConnectionTimeout("TIMEOUT", "slow", OSError()), "did not answer within 60 s"),
        (exceptions.SSLError("N/A", "self-signed", OSError()), "OPENSEARCH_CA_CERTS"),
        (exceptions.SerializationError("<html>"), "not as a search engine does .<html>.*a proxy"),
        (exceptions.TransportError(404, "<html>" * 99, None), "not as a search engine does .404"),
        (exceptions.TransportError(302, "", None), "sign-in page"),
    ],
)
def test_every_refusal_says_what_to_do(answer, advice):
    cluster, _, _ = cluster_of(answer, retries=0)
    with pytest.raises(EngineProblem, match=advice):
        cluster.ask("GET", "/")


def test_only_the_documents_that_were_refused_are_sent_again():
    cluster, transport, waits = cluster_of(items(201, 429, 201, 503), items(429, 201), items(201))
    assert send(cluster, "alias", writes("a", "b", "c", "d")) == []
    assert [sent_ids(request) for request in transport.requests] == [
        ["a", "b", "c", "d"],
        ["b", "d"],
        ["b"],
    ]
    assert len(waits) == 2
    assert all(request[2]["params"]["require_alias"] == "true" for request in transport.requests)


def test_a_lost_answer_sends_the_whole_batch_again_and_reports_what_was_there():
    batch = writes("a", "b", "c")
    cluster, _, _ = cluster_of(lost(), items(409, 201, 409))
    assert send(cluster, "alias", batch) == [batch[0], batch[2]]


def test_a_document_that_the_engine_cannot_take_is_named():
    cluster, _, _ = cluster_of(items(201, 400))
    with pytest.raises(EngineProblem, match="document 'b': e: r"):
        send(cluster, "alias", writes("a", "b"))


def filled(*answers):
    """A load of two documents, "a" and "b", by a cluster that answers so."""
    cluster, transport, _ = cluster_of(*answers)
    load = Load(cluster, "things", "things-1", IndexMetadata({"name": "things"}, 0, ""))
    acknowledged = []
    documents = [Document("a", "one"), Document("b", "two")]
    load.fill(documents, Fingerprint(), acknowledged.extend, note_every=3600)
    return acknowledged, [
        request[2]["body"].decode() for request in transport.requests if "_bulk" in request[1]
    ]


def stored(position):
    return {"docs": [{"_id": "b", "found": True, "_source": {"position": position}}]}


def test_a_document_that_arrived_although_its_answer_was_lost_is_written_to_every_copy_again():
    noted = {"acknowledged": True}
    acknowledged, bodies = filled(lost(), items(201, 409), stored(1), items(200), noted)
    assert acknowledged == ["a", "b"]
    assert bodies[2].startswith('{"index":{"_id":"b"}}')


def test_a_document_that_was_lost_with_its_node_is_created_again():
    missing = {"docs": [{"_id": "b", "found": False}]}
    acknowledged, bodies = filled(items(201, 409), missing, items(201), {"acknowledged": True})
    assert acknowledged == ["a", "b"]
    assert bodies[1].startswith('{"create":{"_id":"b"}}')


def test_a_document_that_stands_elsewhere_in_the_corpus_is_a_second_one():
    with pytest.raises(MalformedInput, match="'b' comes twice, as document 2 and 8"):
        filled(items(201, 409), stored(7))


@given(st.lists(st.text(max_size=30), max_size=30), st.integers(0, 30))
def test_a_corpus_cut_anywhere_has_the_fingerprint_of_the_whole(texts, start):
    documents = [Document(f"d{n}", text) for n, text in enumerate(texts)]
    whole, resumed = Fingerprint(), Fingerprint()
    for document in documents[:start]:
        resumed.add(document)
    for document in documents:
        whole.add(document)
    chunks = list(cut(documents[start:], start, resumed))
    sources = [json.loads(write.source) for chunk in chunks for write in chunk.writes]
    assert [source["text"] for source in sources] == texts[start:]
    assert [source["position"] for source in sources] == list(range(start, len(texts)))
    if chunks:
        assert (chunks[-1].end, chunks[-1].digest) == (len(texts), whole.digest())


def test_batches_are_bounded_by_number_and_by_bytes():
    small = [Write("index", str(n), b"x") for n in range(4500)]
    assert [len(batch) for batch in batches(small)] == [2000, 2000, 500]
    large = [Write("index", str(n), b"x" * 3_000_000) for n in range(5)]
    assert [len(batch) for batch in batches(large)] == [2, 2, 1]


def test_the_loader_reads_no_further_ahead_than_its_window():
    read = []

    def documents():
        for n in range(100_000):
            read.append(n)
            yield Document(str(n), "text")

    cluster, _, _ = cluster_of()
    acknowledged = in_parallel(cluster, lambda _: None, cut(documents(), 0, Fingerprint()))
    assert [next(acknowledged).end for _ in range(3)] == [2000, 4000, 6000]
    assert len(read) <= 10 * 2000
    acknowledged.close()


def test_a_chunk_that_fails_ends_the_load():
    def put(chunk):
        if chunk.end > 5000:
            raise MalformedInput("the corpus", None, "document id 'x' comes twice")

    documents = (Document(str(n), "text") for n in range(50_000))
    cluster, _, _ = cluster_of()
    done = []
    with pytest.raises(MalformedInput):
        done.extend(in_parallel(cluster, put, cut(documents, 0, Fingerprint())))
    assert next(documents).id != "0"  # stopped in the middle of the corpus


@pytest.mark.parametrize(
    "url",
    [
        "https://eve:s3cret@host:9200",
        "http://:s3cret@host",
        "http://eve@host",
        "https://eve:s3cret#@host:9200",
        "https://eve:s3cret/x@host:9200",
        "https://eve:12/s3cret@host:9200",
        "https://eve:s3cret?x@host:9200",
        "https://eve:s3cret[@host:9200",
        "https://eve:s3cret@host:92OO",
        "eve:s3cret@host",
    ],
)
def test_a_url_with_a_password_is_refused_without_repeating_it(url):
    with pytest.raises(EngineProblem, match="OPENSEARCH_PASSWORD") as caught:
        OpenSearchSettings(urls=(url,), name="x")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["host:9200", "ftp://host", "http://", "http://host?x=1", "localhost"]
)
def test_what_is_no_url_is_refused(url):
    with pytest.raises(EngineProblem, match="write it like https://"):
        OpenSearchSettings(urls=(url,), name="x")


@pytest.mark.parametrize("name", ["", "Upper", "_x", "a/b", "a,b", "a*", "x" * 201])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(EngineProblem, match="choose a `name`"):
        OpenSearchSettings(name=name)


@pytest.mark.parametrize(
    "wrong", [{"shards": 0}, {"replicas": -1}, {"b": 1.5}, {"k1": -1}, {"urls": ()}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        OpenSearchSettings(name="x", **wrong)


def test_a_secret_is_no_setting():
    with pytest.raises(UnknownName):
        OpenSearchSettings(name="x", password="s3cret")


def test_nobody_at_the_url_is_said_within_seconds():
    cluster = Cluster.connect(Route(("http://127.0.0.1:9",)))
    with pytest.raises(EngineProblem, match=r"cannot reach the cluster.*examples/compose.yaml"):
        cluster.ask("GET", "/")


@pytest.mark.parametrize(
    ("language", "built_in"),
    [("english", "english"), ("german", "german"), ("none", "standard"), ("thai", "thai")],
)
def test_a_language_is_the_cluster_s_own_analyzer(language, built_in):
    assert _on_cluster(language) == built_in


def test_a_language_that_a_cluster_lacks_is_refused(monkeypatch):
    monkeypatch.setitem(ANALYZERS._added, "elvish", lambda: WordAnalyzer(str.lower))
    with pytest.raises(EngineProblem, match="no counterpart on a cluster; index with bm25s"):
        _on_cluster("elvish")
