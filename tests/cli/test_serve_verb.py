"""`secondlook serve` as a process: its start, its signals, its end."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import tiny
from graphs import sum_of_ids
from secondlook import Document, Ranker
from secondlook.cli import app
from secondlook.errors import SecondlookError
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.serve.keys import Keys, add_key
from secondlook.serve.server import is_loopback, listen

QUERY = "what is the tide"
TEXTS = [f"the tide of the deep sea {number}" for number in range(20)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A ranker that needs no torch, as one would deploy it; its graph is the sum of the ids."""
    return sum_of_ids(tiny.save(tiny.classifier(), tmp_path_factory.mktemp("serve") / "tiny"))


@pytest.fixture(scope="module")
def scores(folder):
    ranker = Ranker.load(folder)
    return ranker.predict([(QUERY, text) for text in TEXTS])


class Process:
    """A server, and what it has logged."""

    def __init__(self, *arguments, **more):
        command = [sys.executable, "-m", "secondlook", "serve", "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **more)
        self.log = []
        threading.Thread(target=self._read, daemon=True).start()
        self.url = re.search(r"http://[0-9.:]+", self.wait_for("running on"))[0]

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)

    def wait_for(self, event, seconds=60):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for line in list(self.log):
                if event in line:
                    return line
            assert self.process.poll() is None, "".join(self.log)
            time.sleep(0.02)
        raise AssertionError("".join(self.log))

    def requests(self):
        lines = [json.loads(line) for line in self.log]
        return [one for one in lines if one.get("route") == "/v2/rerank"]


@contextmanager
def process(*arguments, **more):
    running = Process(*arguments, **more)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        running.process.stderr.close()


class Load:
    """Clients that ask all the time, and check each answer."""

    def __init__(self, url, scores, clients=6):
        self.answered, self.wrong, self.refused = 0, [], 0
        self._url, self._scores = url, scores
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self):
        rng = np.random.default_rng()
        with httpx.Client() as client:
            while not self._stop.is_set():
                chosen = rng.permutation(len(TEXTS))[:8]
                asked = {"query": QUERY, "documents": [TEXTS[place] for place in chosen]}
                try:
                    answer = client.post(f"{self._url}/v2/rerank", json=asked)
                except httpx.TransportError:  # the socket is closed: it was not taken
                    with self._lock:
                        self.refused += 1
                    self._stop.wait(0.05)
                    continue
                self._check(answer, chosen)

    def _check(self, answer, chosen):
        right = answer.status_code == 200 and all(
            abs(one["relevance_score"] - self._scores[chosen[one["index"]]]) < 1e-3
            for one in answer.json()["results"]
        )
        with self._lock:
            self.answered += 1
            if not right:
                self.wrong.append(answer.text)


def full_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_reload_and_end_under_load_on_a_full_disk_lose_no_request(folder, scores):
    with process(folder, preexec_fn=full_disk) as server, Load(server.url, scores) as load:
        while load.answered < 30:
            time.sleep(0.02)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for('"reloaded"')
        before = load.answered
        while load.answered < before + 30:
            time.sleep(0.02)
        assert load.refused == 0
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        time.sleep(0.2)
    assert not load.wrong
    assert "drained" in "".join(server.log)
    assert load.answered == len(server.requests())  # what was taken was answered, and arrived
    assert {one["status"] for one in server.requests()} == {200}


def test_hang_up_reads_keys_and_index_anew_and_the_end_waits_for_no_reader(folder, tmp_path):
    keys, index = tmp_path / "keys", tmp_path / "index"
    key, revoked = add_key(keys, "kept"), add_key(keys, "revoked")
    Bm25Index.build(index, [Document("old", "tide")], Bm25Settings())
    options = ["--keys", keys, "--index", index, "--deadline", "1"]
    with process(folder, *options) as server:

        def search(given):
            headers = {"authorization": f"Bearer {given}"}
            answer = httpx.post(
                f"{server.url}/v1/search", json={"query": "tide"}, headers=headers, timeout=30
            )
            hits = answer.json().get("hits", ())
            return answer.status_code, [hit["id"] for hit in hits]

        assert search(key) == search(revoked) == (200, ["old"])
        assert httpx.get(f"{server.url}/info", headers={"host": "evil.org"}).status_code == 421
        Bm25Index.build(index, [Document("new", "tide")], Bm25Settings())
        keys.write_text(keys.read_text().splitlines()[0] + "\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for('"what": "tiny"')
        assert search(key) == (200, ["new"])
        assert search(revoked) == (401, [])
        body = json.dumps(
            {"query": QUERY, "texts": ["s" * 190_000] * 40, "return_text": True}
        ).encode()
        where = urlsplit(server.url)
        with socket.create_connection((where.hostname, where.port), timeout=30) as client:
            client.sendall(
                b"POST /rerank HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (key.encode(), len(body), body)
            )
            assert client.recv(10)  # and no more of 7 MB
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(30) == 0
    assert all(line.startswith("{") for line in server.log)


def test_without_keys_it_listens_to_this_machine_only(folder):
    def refused(*options):
        done = CliRunner().invoke(app, ["serve", str(folder), *options])
        return str(done.exception)

    told = refused("--host", "0.0.0.0")
    assert "give --keys, a file" in told
    assert "(--no-keys)" in told
    assert "cannot listen on 256.256.256.256" in refused("--host", "256.256.256.256", "--no-keys")


def test_a_port_in_use_is_one_plain_line(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "secondlook", "serve", str(folder), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    taken = f"cannot listen on 127.0.0.1:{port} (Address already in use); take another port"
    assert done.stderr == f"secondlook: {taken}\n"


@pytest.mark.parametrize(
    ("host", "only_here"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("search.example.org", False)],
)  # fmt: skip
def test_loopback_is_told_from_other_addresses(host, only_here):
    assert is_loopback(host) == only_here


def test_every_address_of_a_name_gets_the_same_free_port():
    listeners = listen("localhost", 0)
    assert len({one.getsockname()[1] for one in listeners}) == 1
    for one in listeners:
        one.close()


def refusal(*arguments):
    """Why a server does not start; in this process, where torch is loaded already."""
    nowhere = [
        "--host",
        "256.256.256.256",
        "--no-keys",
    ]  # if it does start after all, it must not serve on
    done = CliRunner().invoke(app, ["serve", *map(str, arguments), *nowhere])
    assert done.exit_code != 0
    return str(done.exception) if isinstance(done.exception, SecondlookError) else done.output


def test_a_damaged_ranker_is_refused(tmp_path):
    broken = tiny.save(tiny.classifier(), tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "model.safetensors is damaged" in refusal(broken)


def test_a_damaged_export_is_refused(folder, tmp_path):
    broken = shutil.copytree(folder, tmp_path / "broken")
    graph = broken / "onnx" / "model.fp32.onnx"
    graph.write_bytes(graph.read_bytes()[:-30])
    assert "export it anew" in refusal(broken)


def test_names_are_checked(folder):
    assert "NAME=RANKER" in refusal(folder, "--name", "fast")
    assert "two re-rankers" in refusal(folder, "--name", f"tiny={folder}")


def test_a_key_is_printed_once_and_opens_the_server(tmp_path):
    done = CliRunner().invoke(app, ["key", "search-team", "--keys", str(tmp_path / "keys")])
    assert Keys.read(tmp_path / "keys").holder(done.output.strip()) == "search-team"


def test_several_workers_share_a_port_and_their_figures(folder, scores):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with process(folder, "--workers", "2", env=environment) as server:
        deadline = time.monotonic() + 60
        while sum('"serving"' in line for line in server.log) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(8):
            asked = {"query": QUERY, "documents": TEXTS}
            answer = httpx.post(f"{server.url}/v2/rerank", json=asked).json()
            assert answer["results"][0]["relevance_score"] == pytest.approx(max(scores), abs=1e-3)
        figures = httpx.get(f"{server.url}/metrics").text
        assert 'secondlook_requests_total{route="/v2/rerank",status="200"} 8.0' in figures
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
