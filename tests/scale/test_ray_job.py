"""On a real Ray, started by the tests on this machine: a dozen processes, so run by hand."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from itertools import product

import pytest

import tiny
from command_line import secondlook
from invented import write_deep_sea
from secondlook.data import write_corpus, write_run
from secondlook.scale.parts import Parts
from secondlook.types import Document, Hit, Ranking

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="pip install 'ray[data]'"),
]


@pytest.fixture(autouse=True)
def polite(monkeypatch):
    """One thread for each process, and workers as likely to get a turn as other processes."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RAY_worker_niceness", "0")


JOB = """
import os, sys, time
from functools import partial
from pathlib import Path
from secondlook.scale.parts import Parts
from secondlook.scale.ray_job import run

folder, address, lost = Path(sys.argv[1]), *sys.argv[2:]

def tools(folder, lost):
    import ray
    node = ray.get_runtime_context().get_node_id()
    def do(work):
        with (folder / "begun").open("a") as begun:
            begun.write(f"{work},{node},{os.getpid()}\\n")
        if work == lost and not (folder / "lost").exists():
            (folder / "lost").touch()
            os.kill(os.getpid(), 9)
        time.sleep(0.5)
        while (folder / "held").exists():
            time.sleep(0.1)
        return work.upper(), 1
    return do

if __name__ == "__main__":
    parts = Parts(folder / "target", {"job": 1})
    count = parts.give(f"part {n}" for n in range(%(parts)d))
    run(address, parts.missing(count), partial(tools, folder, lost))
"""
PARTS = 8


def begun(folder):
    """The parts that were begun: which, on which node, by which process."""
    path = folder / "begun"
    return [line.split(",") for line in path.read_text().splitlines()] if path.exists() else []


def results(parts):
    return [path.read_text() for path in parts.results(PARTS)]


WHOLE = [f"PART {n}" for n in range(PARTS)]


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job.py").write_text(JOB % {"parts": PARTS})

    started = []

    def start(address="local", lost="none"):
        process = subprocess.Popen(
            [sys.executable, str(tmp_path / "job.py"), str(tmp_path), address, lost],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:  # Ray's own processes end with their driver
        with process:  # closes its pipe
            process.kill()


@pytest.mark.timeout(1200)
def test_a_killed_driver_leaves_its_results_and_the_next_does_the_rest(tmp_path, job):
    first = job()
    parts = Parts(tmp_path / "target", {"job": 1})
    until = time.monotonic() + 500
    while len(list(parts.folder.glob("*.done"))) < 2:
        assert first.poll() is None, first.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(2)  # its workers end with it
    kept = {path: path.stat().st_mtime_ns for path in parts.folder.glob("*.done")}
    second = job()
    said = second.stderr.read()
    assert second.wait() == 0, said
    assert said == ""
    assert results(parts) == WHOLE
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(begun(tmp_path)) <= PARTS + (os.cpu_count() or 1)  # at most those in flight again


@pytest.mark.timeout(1200)
def test_the_part_of_a_worker_that_dies_is_done_by_another(tmp_path, job):
    done = job(lost="part 3")
    assert done.wait() == 0, done.stderr.read()
    parts = Parts(tmp_path / "target", {"job": 1})
    assert results(parts) == WHOLE
    assert [part for part, *_ in begun(tmp_path)].count("part 3") == 2


@pytest.fixture
def two_nodes():
    """A Ray of two nodes of one core each, with object stores of their own, on this machine."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False})
    cluster.add_node()
    yield cluster
    for node in (*cluster.worker_nodes, cluster.head_node):
        node.kill_all_processes(check_alive=False, wait=True)


def lose(node, worker):
    """All of a machine is gone at once: Ray's daemon, its object store and what it runs."""
    node.kill_raylet()
    os.kill(worker, signal.SIGKILL)


@pytest.mark.timeout(1200)
def test_a_lost_node_is_survived(tmp_path, job, two_nodes):
    (tmp_path / "held").touch()  # both nodes are in the midst of a part when one is lost
    running = job(two_nodes.address)
    until = time.monotonic() + 500
    while len({node for _, node, _ in begun(tmp_path)}) < 2:
        assert running.poll() is None, running.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.1)
    [far] = two_nodes.worker_nodes
    [(part, _, process)] = [row for row in begun(tmp_path) if row[1] == far.node_id]
    lose(far, int(process))
    (tmp_path / "held").unlink()
    assert running.wait() == 0, running.stderr.read()
    assert results(Parts(tmp_path / "target", {"job": 1})) == WHOLE
    again = [one for one, *_ in begun(tmp_path)]
    assert sorted(again) == sorted([f"part {n}" for n in range(PARTS)] + [part])


@pytest.mark.timeout(1200)
def test_reranking_on_ray_is_reranking(tmp_path):
    words = product("cape fear river tide fish".split(), "bogue bog a".split())
    texts = {f"d{n}": f"{one} {other} of the deep sea {n}" for n, (one, other) in enumerate(words)}
    queries = {"q1": "what is the tide", "q2": "who is cape fear", "q3": "where is the river"}
    for name, rows in (("corpus", texts), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in rows.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    hits = [Hit(doc_id, float(-number)) for number, doc_id in enumerate(texts)]
    write_run(tmp_path / "first.trec", [Ranking.of(query_id, hits) for query_id in queries])
    tiny.save(tiny.encoder(), tmp_path / "base")
    secondlook("warm", tmp_path / "base", "-o", tmp_path / "ranker")
    secondlook("index", tmp_path / "corpus.jsonl", tmp_path / "index")
    given = ["rerank", tmp_path / "first.trec", "--index", tmp_path / "index"]
    given += ["--queries", tmp_path / "queries.jsonl", "--ranker", tmp_path / "ranker"]
    given += ["--depth", 12]
    secondlook(*given, "-o", tmp_path / "here.trec")
    secondlook(*given, "-o", tmp_path / "there.trec", "--ray", "local")
    assert (tmp_path / "there.trec").read_bytes() == (tmp_path / "here.trec").read_bytes()
    assert not list(tmp_path.glob(".*parts"))


@pytest.mark.timeout(1200)
def test_weighing_on_ray_is_weighing(tmp_path):
    given = write_deep_sea(tmp_path)
    tiny.save(tiny.encoder(), tmp_path / "base")
    train = ["weigh", "train", *given, "--base", tmp_path / "base", "-o", tmp_path / "weigher"]
    secondlook(*train, "--max-steps", 2, "--max-length", 40, "--device", "cpu")
    weigh = ["weigh", tmp_path / "corpus.jsonl", "--weigher", tmp_path / "weigher"]
    secondlook(*weigh, "-o", tmp_path / "here.jsonl", "--device", "cpu")
    secondlook(*weigh, "-o", tmp_path / "there.jsonl", "--device", "cpu", "--ray", "local")
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    assert not list(tmp_path.glob(".*parts"))


@pytest.mark.timeout(1200)
def test_mining_on_ray_is_mining(tmp_path):
    corpus, queries, qrels = write_deep_sea(tmp_path)
    secondlook("index", corpus, tmp_path / "index")
    mine = ["mine", tmp_path / "index", queries, qrels, "--negatives", 4]
    secondlook(*mine, "-o", tmp_path / "here.parquet")
    secondlook(*mine, "-o", tmp_path / "there.parquet", "--ray", "local")
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()
    assert not list(tmp_path.glob(".*parts"))


@pytest.mark.timeout(1200)
def test_encoding_on_ray_is_encoding_though_its_driver_is_killed(tmp_path):
    words = "cape fear river tide fish bogue bog".split()
    texts = (" ".join(words[(n + m * m) % 7] for m in range(3 + n % 20)) for n in range(12_000))
    corpus = tmp_path / "corpus.jsonl"
    write_corpus(corpus, [Document(f"d{n}", text) for n, text in enumerate(texts)])
    tiny.save(tiny.encoder(), tmp_path / "base")
    given = ["--vectors", tmp_path / "base", "--precision", "fp16"]
    secondlook("index", corpus, tmp_path / "here", *given)
    secondlook("index", corpus, tmp_path / "there")  # what is killed is the encoding
    job = list(map(str, ["index", corpus, tmp_path / "there", *given, "--ray", "local"]))
    parts = tmp_path / "there" / ".vectors.parts"
    until = time.monotonic() + 500
    first = subprocess.Popen([sys.executable, "-m", "secondlook", *job])
    try:
        while not list(parts.glob("*.done")):
            assert first.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        first.kill()
        first.wait()
    time.sleep(2)  # its workers end with it
    assert 0 < len(list(parts.glob("*.done"))) < len(list(parts.glob("*.work")))
    secondlook(*job)
    made = [tmp_path / name / "vectors" for name in ("here", "there")]
    files = [{p.name: p.read_bytes() for p in one.iterdir() if p.is_file()} for one in made]
    assert files[0] == files[1]
    assert not list((tmp_path / "there").glob(".vectors*"))
