"""`secondlook serve` as a process: its start, its signals, its end."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import tiny
from graphs import sum_of_ids
from secondlook import Ranker
from secondlook.cli import app
from secondlook.errors import SecondlookError
from secondlook.serve.keys import Keys

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
    assert "two rankers" in refusal(folder, "--name", f"tiny={folder}")


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
