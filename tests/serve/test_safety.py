"""Keys, limits, headers and logs; and bodies that wish us ill."""

import asyncio
import json
import socket
import threading
import time
import weakref
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient

from secondlook import Ranker
from secondlook.errors import MalformedInput, Unwritable
from secondlook.serve import server
from secondlook.serve.app import build_app
from secondlook.serve.keys import Keys, add_key
from secondlook.serve.limits import Limits
from secondlook.serve.server import ServerSettings, _options, open_serving
from served import QUERY, TEXTS, Watched, listening, serving

ASKED = {"query": QUERY, "documents": TEXTS}
PATHS = ["/v2/rerank", "/v1/rerank", "/rerank", "/v1/search"]


@pytest.fixture(scope="module")
def small(ranker):
    """A server with tight limits."""
    limits = Limits(
        documents=100,
        text_characters=1000,
        query_characters=100,
        body_bytes=100_000,
        body_seconds=0.5,
    )
    with listening(serving(ranker, limits=limits)) as url:
        yield url


def post(url, path, body, **headers):
    return httpx.post(
        url + path, content=body, headers={"content-type": "application/json"} | headers
    )


HOSTILE = {
    "nothing": b"",
    "no JSON": b"query=tide",
    "deep": b"[" * 50_000,
    "deep in place": b'{"query":"a","documents":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "UTF-16": json.dumps(ASKED).encode("utf-16"),
    "Latin-1": b'{"query":"caf\xe9","documents":["a"]}',
    "overlong UTF-8": b'{"query":"\xc0\xaf","documents":["a"]}',
    "UTF-8 surrogate": b'{"query":"\xed\xa0\x80","documents":["a"]}',
    "lone surrogate": b'{"query":"\\ud800","documents":["a"],"texts":["a"]}',
    "lone surrogate in a text": b'{"query":"a","documents":["\\udfff"],"texts":["\\udfff"]}',
    "NaN": b'{"query":"a","documents":["a"],"texts":["a"],"top_n":NaN,"k":NaN,"truncate":NaN}',
    "NaN for a query": b'{"query":NaN,"documents":["a"],"texts":["a"]}',
    "infinite": b'{"query":"a","documents":["a"],"texts":[1e999],"top_n":1e999,"k":1e999}',
    "huge number": b'{"query":"a","documents":["a"],"top_n":' + b"9" * 5000 + b',"query":1}',
    "a number for a query": b'{"query":7,"documents":["a"],"texts":["a"]}',
    "null": b"null",
    "a list": b"[1,2,3]",
    "a text": b'"query"',
    "documents no list": b'{"query":"a","documents":"a","texts":"a","k":"b"}',
    "documents of numbers": b'{"query":"a","documents":[1],"texts":[1],"k":[]}',
    "10,000 documents": json.dumps({"query": "a", "documents": ["a"] * 10_000}).encode(),
    "10,000 texts": json.dumps({"query": "a", "texts": ["a"] * 10_000}).encode(),
    "long text": json.dumps(
        {"query": "a", "documents": ["a" * 2000], "texts": ["a" * 2000]}
    ).encode(),
    "long query": json.dumps({"query": "a" * 200, "documents": ["a"], "texts": ["a"]}).encode(),
    "cut off": b'{"query":"a","documents":["a"',
    "two bodies": b'{"query":"a","documents":["a"],"texts":["a"]}{}',
    "BOM": b"\xef\xbb\xbf" + json.dumps(ASKED).encode(),
}


@pytest.mark.parametrize("path", PATHS)
def test_hostile_bodies_are_refused_in_the_apis_own_words(small, path):
    with httpx.Client(base_url=small, headers={"content-type": "application/json"}) as client:
        for name, body in HOSTILE.items():
            answer = client.post(path, content=body)
            assert 400 <= answer.status_code < 500, name
            assert answer.json()["error" if path == "/rerank" else "message"], name
        good = client.post(path, content=json.dumps(ASKED | {"texts": TEXTS}).encode())
        assert good.status_code == (404 if path == "/v1/search" else 200)  # no index here


def test_control_characters_and_odd_letters_are_texts_like_any_other(small):
    texts = ["\x00\x01", "\u202e\u200b", "😀" * 50, " ", "", "[SEP] [CLS]", "\ufffe"]
    answer = httpx.post(f"{small}/v2/rerank", json={"query": "\x00", "documents": texts})
    assert sorted(one["index"] for one in answer.json()["results"]) == list(range(7))


def test_fifty_megabytes_are_not_read(small):
    began = time.monotonic()
    answer = post(small, "/v2/rerank", b'{"query":"' + b"a" * 50_000_000)
    assert answer.status_code == 413
    assert "100,000 bytes" in answer.json()["message"]
    assert time.monotonic() - began < 5


def test_bytes_are_counted_where_no_length_is_told(small):
    def stream():
        yield b'{"query":"'
        for _ in range(200):
            yield b"a" * 1000

    assert post(small, "/rerank", stream()).status_code == 413


def test_a_body_that_does_not_come_is_not_waited_for(small):
    where = urlsplit(small)
    with socket.create_connection((where.hostname, where.port), timeout=5) as client:
        client.sendall(
            b"POST /v2/rerank HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        assert b" 408 " in client.recv(4096).split(b"\r\n")[0]


def test_errors_do_not_repeat_what_was_sent(small):
    answer = post(small, "/v2/rerank", b'{"query":["secret"],"documents":{"secret":1}}')
    assert answer.status_code == 422
    assert "secret" not in answer.text


def test_keys_are_needed_where_there_are_keys(ranker, tmp_path):
    key = add_key(tmp_path / "keys", "search-team")
    other = add_key(tmp_path / "keys", "other")
    assert key not in (tmp_path / "keys").read_text()
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0
    with listening(serving(ranker, keys=tmp_path / "keys")) as url:
        for path in PATHS:
            answer = httpx.post(url + path, json=ASKED)
            assert (answer.status_code, "needs a key" in answer.text) == (401, True)
        refused = httpx.post(f"{url}/rerank", json=ASKED)
        assert refused.json()["error_type"] == "Unauthorized"
        assert refused.headers["www-authenticate"] == "Bearer"
        for given in (f"Bearer {key}x", "Bearer", key, f"Basic {key}", "Bearer \xff"):
            headers = {"authorization": given.encode("latin-1")}
            answer = httpx.get(f"{url}/info", headers=headers)
            wrong = given[:7].lower() == "bearer " and len(given) > 7
            assert (answer.status_code, "wrong key" in answer.text) == (401, wrong)
        for given in (key, other):
            headers = {"authorization": f"Bearer {given}"}
            assert httpx.post(f"{url}/v2/rerank", json=ASKED, headers=headers).status_code == 200
        assert httpx.get(f"{url}/metrics").status_code == 401
        assert httpx.get(f"{url}/health").status_code == 200
        assert httpx.get(f"{url}/ready").status_code == 200
        assert httpx.get(url).status_code == 200


def test_many_wrong_keys_are_told_to_wait_but_a_right_one_is_not(ranker, tmp_path):
    key = add_key(tmp_path / "keys", "team")
    limits = Limits(wrong_keys_per_minute=5)
    with listening(serving(ranker, keys=tmp_path / "keys", limits=limits)) as url:

        def ask(given):
            return httpx.get(f"{url}/info", headers={"authorization": f"Bearer {given}"})

        assert [ask(f"wrong{number}").status_code for number in range(8)] == [401] * 5 + [429] * 3
        assert int(ask("wrong").headers["retry-after"]) >= 1
        assert ask(key).status_code == 200


@pytest.mark.parametrize(("proxies", "last"), [((), 429), (("127.0.0.1",), 401)])
def test_forwarded_addresses_are_believed_from_named_proxies_only(
    ranker, tmp_path, monkeypatch, proxies, last
):
    """Else a client on this machine gives itself another address for every wrong key."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    add_key(tmp_path / "keys", "team")
    made = serving(ranker, keys=tmp_path / "keys", limits=Limits(wrong_keys_per_minute=2))
    settings = ServerSettings(rankers={"tiny": "tiny"}, proxies=proxies)
    config = uvicorn.Config(build_app(made), **_options(settings))
    config.load()
    client = TestClient(config.loaded_app, client=("127.0.0.1", 50_000))
    statuses = [
        client.get(
            "/info", headers={"authorization": "Bearer x", "x-forwarded-for": f"10.0.0.{n}"}
        ).status_code
        for n in range(3)
    ]
    assert statuses == [401, 401, last]


def test_a_revoked_key_stops_working_at_a_reload(ranker, tmp_path):
    path = tmp_path / "keys"
    kept, revoked = add_key(path, "kept"), add_key(path, "revoked")
    made = serving(ranker, keys=path)
    with listening(made) as url:

        def statuses():
            return [
                httpx.get(f"{url}/info", headers={"authorization": f"Bearer {key}"}).status_code
                for key in (kept, revoked)
            ]

        assert statuses() == [200, 200]
        path.write_text(path.read_text().splitlines()[0] + "\n")
        asyncio.run(made.reload())
        assert statuses() == [200, 401]
        path.unlink()  # the keys of before hold
        asyncio.run(made.reload())
        assert statuses() == [200, 401]
        path.write_text("")
        asyncio.run(made.reload())
        assert statuses() == [401, 401]


def test_a_line_that_is_no_key_keeps_no_revoked_key_alive(ranker, tmp_path, log):
    path = tmp_path / "keys"
    revoked, kept = add_key(path, "revoked"), add_key(path, "kept")
    made = serving(ranker, keys=path)
    path.write_bytes(path.read_bytes().splitlines()[1] + b"\nteam hunter2\ncaf\xe9")
    asyncio.run(made.reload())
    assert [made.keys.holder(key) for key in (revoked, kept)] == [None, "kept"]
    assert [line["line"] for line in log() if "no key" in line["event"]] == [2, 3]
    assert "hunter2" not in json.dumps(log())


def test_a_key_is_added_below_a_last_line_without_its_end(tmp_path):
    path = tmp_path / "keys"
    first = add_key(path, "first")
    path.write_text(path.read_text().rstrip("\n"))
    keys = [first, add_key(path, "second"), add_key(path, "third")]
    assert [Keys.read(path).holder(key) for key in keys] == ["first", "second", "third"]
    assert len(path.read_text().splitlines()) == 3


def test_a_file_without_keys_is_refused(tmp_path):
    path = tmp_path / "keys"
    with pytest.raises(MalformedInput, match="cannot be read"):
        Keys.read(path)
    path.write_text("# none\n")
    with pytest.raises(MalformedInput, match="holds no key"):
        Keys.read(path)
    path.write_text("\nteam hunter2\n")
    with pytest.raises(MalformedInput, match=":2: is no key"):
        Keys.read(path)
    with pytest.raises(Unwritable, match="no name for a key"):
        add_key(path, "a b")


def test_every_answer_has_security_headers_and_an_id(small):
    for answer in (
        httpx.get(small),
        httpx.get(f"{small}/nowhere"),
        httpx.post(f"{small}/v2/rerank", json=ASKED),
        httpx.post(f"{small}/v2/rerank", json={}),
    ):
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert len(answer.headers["x-request-id"]) == 32
    assert httpx.get(f"{small}/info").headers["cache-control"] == "no-store"
    own = httpx.get(f"{small}/info", headers={"x-request-id": "trace-7"})
    assert own.headers["x-request-id"] == "trace-7"
    odd = httpx.get(f"{small}/info", headers={"x-request-id": '"},{'})
    assert len(odd.headers["x-request-id"]) == 32


def test_what_nobody_foresaw_is_a_500_like_any_other_answer(ranker, monkeypatch):
    made = serving(ranker)
    monkeypatch.setattr(made, "until", lambda _: 1 / 0)
    with listening(made) as url:
        failed = httpx.post(f"{url}/v2/rerank", json=ASKED)
        assert (failed.status_code, "log" in failed.json()["message"]) == (500, True)
        assert failed.headers["x-content-type-options"] == "nosniff"
        assert failed.headers["x-request-id"]
        backend = httpx.post(f"{url}/rerank", json={"query": QUERY, "texts": TEXTS})
        assert (backend.status_code, backend.json()["error_type"]) == (424, "Backend")
        assert httpx.get(f"{url}/health").status_code == 200


def test_the_log_has_ids_and_counts_but_no_text(ranker, log):
    with listening(serving(Watched(ranker, breaks_on="bogus"))) as url:
        asked = {"query": "secret tide", "documents": ["secret sea", "fish"]}
        answer = httpx.post(f"{url}/v2/rerank", json=asked)
        failed = httpx.post(f"{url}/rerank", json={"query": "secret", "texts": ["bogus secret"]})
    assert (failed.status_code, failed.json()["error_type"]) == (424, "Backend")
    (line,) = [one for one in log() if one.get("route") == "/v2/rerank"]
    assert line["id"] == answer.headers["x-request-id"]
    assert (line["status"], line["documents"], line["scored"]) == (200, 2, 2)
    assert "secret" not in json.dumps([one | {"traceback": ""} for one in log()])


def test_queries_are_logged_where_that_is_asked_for(ranker, log):
    with listening(serving(ranker, log_texts=True)) as url:
        httpx.post(f"{url}/v2/rerank", json=ASKED)
    assert [one["query"] for one in log() if "query" in one] == [QUERY]


def test_on_loopback_a_server_answers_to_the_host_it_was_given(tiny_folder):
    def hosts(host, **more):
        served = open_serving(ServerSettings(rankers={"r": str(tiny_folder)}, host=host, **more))
        asyncio.run(served.drain(10))
        return served.hosts

    assert hosts("127.0.0.1") == {"localhost", "127.0.0.1", "[::1]"}
    assert hosts("127.0.0.2") == {"localhost", "127.0.0.1", "[::1]", "127.0.0.2"}
    assert "[0:0:0:0:0:0:0:1]" in hosts("0:0:0:0:0:0:0:1")
    assert hosts("127.0.0.2", hosts=("My.Name",)) == {"my.name"}


def test_a_process_that_only_watches_workers_holds_no_ranker(tiny_folder, monkeypatch):
    watched, threads = [], set(threading.enumerate())

    def load(source):
        ranker = Ranker.load(source, device="cpu")
        watched.append(weakref.ref(ranker))
        return ranker

    def begin(*_, workers, **__):
        assert workers == 2
        assert [ranker() for ranker in watched] == [None]
        for thread in set(threading.enumerate()) - threads:
            if thread.name.startswith(("score", "engine")):
                thread.join(10)
                assert not thread.is_alive()
        watched.append("begun")

    monkeypatch.setattr(server, "open_ranker", load)
    monkeypatch.setattr(server, "log_to", lambda: None)
    monkeypatch.setattr("uvicorn.run", begin)
    for name in ("SECONDLOOK_SERVE", "PROMETHEUS_MULTIPROC_DIR"):
        monkeypatch.setenv(name, "")  # set by the server, and given back after the test
    server.run(ServerSettings(rankers={"r": str(tiny_folder)}, port=0, workers=2))
    assert watched[-1] == "begun"
