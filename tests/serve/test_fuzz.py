"""Whatever bytes come in, there is an answer or a closed connection, and the loop goes on."""

import json
import random
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from secondlook import Document
from secondlook.serve.explaining import PairExplainer
from secondlook.serve.limits import Limits
from secondlook.serve.protocol import BoundedProtocol
from served import TEXTS, Engine, listening, serving

BODY = json.dumps({"query": "tide", "documents": TEXTS, "texts": TEXTS, "text": "sea"}).encode()
MISSHAPED = b'{"query":1,"documents":{"a":[]},"texts":[null],"k":-1,"text":2}'
PATHS = [
    "/v2/rerank",
    "/v1/rerank",
    "/rerank",
    "/v1/search",
    "/v1/explain",
    "/health",
    "/info",
    "/",
]
ODD = [
    b"", b"\x00", b"\xff\xfe", b"\r\n", b"\n", b"\r\n\r\n", b"%", b"%00", b"%ff", b"//[", b"?",
    b"#", b"..", b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":", b"-1", b"1e999", b"9" * 400,
    b"chunked", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"HTTP/1.0",
    b"Expect: 100-continue\r\n", b"HTTP/2.0", b"Host: a\r\n", b"Connection: close\r\n",
    b"Upgrade: websocket\r\nConnection: upgrade\r\n", b"X-Deadline-Seconds: nan\r\n",
    b"Authorization: Bearer \xff\r\n", b"X-Request-Id: \x01\r\n", b"traceparent: 00-x\r\n",
    b"X-Deadline-Seconds: 0.1\r\n",
]  # fmt: skip


def request(rng):
    """Bytes that begin as a request and are then spoiled in a few places."""
    path = rng.choice(PATHS).encode()
    method = rng.choice([b"POST", b"POST", b"POST", b"GET", b"HEAD", b"OPTIONS", b"PUT", b"x"])
    body = rng.choice([BODY, BODY, BODY, MISSHAPED]) if method == b"POST" else b""
    if rng.random() < 0.5:
        body = spoiled(body, rng)
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % (
        method,
        path,
    )
    if rng.random() < 0.9:
        head += b"Content-Length: %d\r\n" % len(body)
    whole = head + b"Connection: close\r\n\r\n" + body
    return spoiled(whole, rng) if rng.random() < 0.7 else whole


def spoiled(text, rng):
    text = bytearray(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        kind = rng.random()
        if kind < 0.4:
            text[at:at] = rng.choice(ODD)
        elif kind < 0.6:
            del text[at : at + rng.randint(1, 20)]
        elif kind < 0.8:
            text[at : at + 1] = rng.randbytes(1)
        else:
            text[at:at] = text[max(0, at - rng.randint(1, 60)) : at]
    return bytes(text)


def status_of(url, sent):
    """The status of the first answer; None where the connection was closed without one."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=30) as client:
        got = b""
        try:
            client.sendall(sent)
            while b"\r\n\r\n" not in got and (part := client.recv(65536)):
                got += part
        except (ConnectionResetError, BrokenPipeError):
            return None
    line = got.split(b"\r\n", 1)[0].split(b" ")
    return int(line[1]) if len(line) > 1 else None


def fuzz(ranker, cases, seed):
    """Each status and how often it came; 16 clients at once, and /health in between."""
    engine = Engine(Document(f"d{n}", text) for n, text in enumerate(TEXTS))
    limits = Limits(deadline=5, body_seconds=0.5)
    made = serving(ranker, index=engine, explainer=PairExplainer(), limits=limits)
    rng = random.Random(seed)
    requests = [request(rng) for _ in range(cases)]
    with (
        listening(made) as url,
        httpx.Client(base_url=url, timeout=5) as probe,
        ThreadPoolExecutor(16) as clients,
    ):
        seen = Counter()
        for sent, status in zip(
            requests, clients.map(lambda one: status_of(url, one), requests), strict=True
        ):
            seen[status] += 1
            # a client's own deadline may end an explanation or a search: 504 is documented
            assert status is None or status < 500 or status == 504, sent
            if seen.total() % 50 == 0:
                assert probe.get("/health").status_code == 200
        ends = time.monotonic() + 10
        while made.in_flight.now or any(queue.waiting for queue in made.queues.values()):
            assert time.monotonic() < ends
            time.sleep(0.01)
    return seen


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.5)


def test_spoiled_requests_get_no_server_error(ranker):
    seen = fuzz(ranker, 300, seed=7)
    assert {200, 400, 408, 422} <= set(seen), seen


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_twenty_thousand_spoiled_requests_get_no_server_error(ranker):
    seen = fuzz(ranker, 20_000, seed=11)
    assert {200, 400, 404, 405, 408, 415, 422} <= set(seen)
