"""Connections that send nothing, read nothing, or are too many; and bodies that are too much."""

import contextlib
import json
import resource
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest

from secondlook.serve.body import JsonValueCounter
from secondlook.serve.limits import Limits
from secondlook.serve.protocol import BoundedProtocol
from secondlook.serve.rates import TokenBuckets
from served import QUERY, TEXTS, Watched, listening, serving

ASKED = {"query": QUERY, "documents": TEXTS}
PATHS = {"/v2/rerank": "documents", "/v1/rerank": "documents", "/rerank": "texts"}


def connect(url):
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), timeout=10)


class Probe(threading.Thread):
    """Asks /health all the time, and remembers the slowest answer."""

    def __init__(self, url):
        super().__init__()
        self.slowest, self.answers = 0.0, 0
        self._url, self._over = url, threading.Event()

    def run(self):
        with httpx.Client() as client:
            while not self._over.is_set():
                began = time.monotonic()
                assert client.get(f"{self._url}/health").status_code == 200
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.answers += 1

    def __enter__(self):
        self.start()
        while not self.answers:
            time.sleep(0.005)
        self.slowest = 0.0
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()


@pytest.mark.parametrize(
    ("path", "item"), [*((path, b"1") for path in PATHS), ("/v1/rerank", b"{}"), ("/rerank", b'""')]
)
def test_fifteen_megabytes_of_wrong_items_are_refused_at_once(url, path, item):
    count = 15_000_000 // (len(item) + 1)
    body = b'{"query":"a","%s":[' % PATHS[path].encode() + b",".join([item] * count) + b"]}"
    with Probe(url) as probe:
        began = time.monotonic()
        answer = httpx.post(
            url + path, content=body, headers={"content-type": "application/json"}, timeout=60
        )
        took = time.monotonic() - began
    assert 400 <= answer.status_code < 500
    assert len(answer.content) < 1000
    assert took < 3  # a third of a second was seen; other tests may run beside this one
    assert probe.slowest < 1  # a tenth of one was seen


def test_as_many_wrong_items_as_are_parsed_make_one_error(ranker):
    with listening(serving(ranker, limits=Limits(documents=1000))) as url:
        body = json.dumps({"query": "a", "documents": [1] * 100_000})
        answer = httpx.post(
            f"{url}/v2/rerank", content=body, headers={"content-type": "application/json"}
        )
    assert (answer.status_code, answer.json()["message"].count("documents.")) == (422, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_commas_of_strings_are_no_values(size):
    value = ["a,b", 'quoted ",", \\', "\\\\", [1, 2, 3], {"a": "\\", "b,": ",,,"}, '\\",']
    text = json.dumps(value).encode()
    counter = JsonValueCounter()
    for start in range(0, len(text), size):
        counter.feed(text[start : start + size])
    assert counter.commas == 5 + 2 + 1


def test_bodies_in_flight_are_bounded_together(ranker):
    held = Watched(ranker)
    held.go.clear()
    made = serving(held, limits=Limits(bytes_in_flight=20_000))
    asked = {"query": QUERY, "documents": ["sea " * 3000]}  # 12,000 bytes
    with listening(made) as url:
        first = threading.Thread(
            target=httpx.post, args=(f"{url}/v2/rerank",), kwargs={"json": asked, "timeout": 30}
        )
        first.start()
        assert held.begun.wait(30)
        refused = httpx.post(f"{url}/v2/rerank", json=asked)

        def unannounced():
            yield json.dumps(asked).encode()

        chunked = httpx.post(
            f"{url}/v2/rerank", content=unannounced(), headers={"content-type": "application/json"}
        )
        held.go.set()
        first.join()
        while made.in_flight.now:  # a moment after the answer
            time.sleep(0.005)
        assert httpx.post(f"{url}/v2/rerank", json=asked).status_code == 200
    for answer in (refused, chunked):
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


def test_headers_that_do_not_come_are_not_waited_for(ranker, monkeypatch):
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.3)
    with listening(serving(ranker)) as url:
        for sent in (b"", b"GET /health HTTP/1.1\r\nHost:"):
            with connect(url) as client:
                client.sendall(sent)
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(100) == b""
        with connect(url) as client:  # nor behind an answered request
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in client.recv(4096)
            client.sendall(b"GET /health HT")
            with contextlib.suppress(ConnectionResetError):
                while client.recv(4096):
                    pass


def test_a_slow_answer_outlives_the_time_limit_for_headers(ranker, monkeypatch):
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.2)
    slow = Watched(ranker, seconds_per_pair=0.2)
    with listening(serving(slow)) as url:
        assert httpx.post(f"{url}/v2/rerank", json=ASKED).status_code == 200


def test_a_thousand_half_open_connections_do_not_stop_it(ranker):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2048:  # the clients are in this process
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
    with listening(serving(ranker, limits=Limits(connections=50))) as url:
        with contextlib.ExitStack() as stack, httpx.Client() as patient:
            assert patient.post(f"{url}/v2/rerank", json=ASKED).status_code == 200
            for number in range(1000):
                client = stack.enter_context(connect(url))
                client.sendall(b"POST /v2/rerank HTTP/1.1\r\nHost: a\r\nX-Number: %d" % number)
                if number % 100 == 0:
                    assert httpx.post(f"{url}/v2/rerank", json=ASKED).status_code == 200
            assert httpx.get(f"{url}/health").status_code == 200
        assert httpx.post(f"{url}/v2/rerank", json=ASKED).status_code == 200


def test_where_all_connections_are_being_answered_one_more_gets_a_503(ranker):
    held = Watched(ranker)
    held.go.clear()
    with listening(serving(held, limits=Limits(connections=2))) as url:
        waiting = [
            threading.Thread(
                target=httpx.post, args=(f"{url}/v2/rerank",), kwargs={"json": ASKED, "timeout": 30}
            )
            for _ in range(2)
        ]
        for one in waiting:
            one.start()
            time.sleep(0.2)
        assert held.begun.wait(30)
        refused = httpx.get(f"{url}/health")
        held.go.set()
        for one in waiting:
            one.join()
        assert httpx.get(f"{url}/health").status_code == 200
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


def test_a_client_that_does_not_read_is_cut_off(ranker, monkeypatch):
    monkeypatch.setattr(BoundedProtocol, "write_seconds", 0.3)
    made = serving(ranker)
    texts = ["s" * 190_000] * 40  # 7 MB are sent back: more than any buffer on the way holds
    body = json.dumps({"query": QUERY, "texts": texts, "return_text": True}).encode()
    with listening(made) as url, connect(url) as client:
        client.sendall(
            b"POST /rerank HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        assert client.recv(10)
        ends = time.monotonic() + 20
        while made.in_flight.now:  # until it is over, though nobody reads
            assert time.monotonic() < ends
            time.sleep(0.02)


def test_one_key_may_not_ask_all_the_time(ranker):
    limited = serving(ranker, limits=Limits(requests_per_second=1))
    with listening(limited) as url, httpx.Client(base_url=url) as client:
        statuses = [client.get("/info").status_code for _ in range(30)]
        refused = client.get("/info")
        assert client.get("/health").status_code == 200
    assert statuses[:10] == [200] * 10
    assert 429 in statuses
    assert int(refused.headers["retry-after"]) >= 1


def test_buckets_fill_again_and_each_client_has_its_own():
    now = [0.0]
    buckets = TokenBuckets(2, 3, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b") == 0
    now[0] = 0.5
    assert [buckets.take("a"), buckets.take("a")] == [0, 0.5]


def test_only_the_hosts_it_was_told_are_answered(ranker):
    hosts = frozenset({"search.example.org", "[::1]"})
    with listening(serving(ranker, hosts=hosts)) as url:

        def ask(host, path="/info"):
            return httpx.get(url + path, headers={"host": host}).status_code

        assert ask("evil.example.com") == ask("127.0.0.1:8080") == 421
        assert ask("search.example.org") == ask("Search.example.org:8080") == ask("[::1]:80") == 200
        assert ask("10.0.0.7:8080", "/ready") == 200  # probes name the pod's address


def test_curl_without_a_content_type_gets_a_hint(url):
    for headers in ({}, {"content-type": "application/x-www-form-urlencoded"}):
        answer = httpx.post(f"{url}/v2/rerank", content=json.dumps(ASKED), headers=headers)
        assert answer.status_code == 415
        assert "Content-Type: application/json" in answer.json()["message"]
