from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
from safetensors.numpy import load_file

import tiny
from command_line import in_process, secondlook
from invented import invent
from secondlook.data import write_corpus
from secondlook.errors import CheckpointProblem, MalformedInput, SecondlookError
from secondlook.model.checkpoint import open_checkpoint
from secondlook.train.groups import write_groups
from secondlook.types import Document

RECIPE = """
base = "some/where"
seed = 5

[data]
train = ["train.parquet"]
validation = "dev.parquet"

[[phases]]
phase = "pointwise"
batch = 4
epochs = 3
learning_rate = 1e-3
validate_every = 5

[[phases]]
phase = "listwise"
negatives = 3
batch = 4
epochs = 4
learning_rate = 1e-3
validate_every = 3
"""


@pytest.fixture
def bench(tmp_path):
    """A recipe with its data beside it, and a base."""
    tiny.save(tiny.encoder(), tmp_path / "base")
    (tmp_path / "my.toml").write_text(RECIPE)
    write_groups(tmp_path / "train.parquet", invent(24, seed=1), about={"queries": "invented"})
    write_groups(tmp_path / "dev.parquet", invent(8, seed=2), about={})
    return tmp_path


def arguments(bench, name, *more):
    base = bench / "base"
    given = bench / "my.toml", "-o", bench / name, "--base", base, "--device", "cpu", *more
    return ["train", *map(str, given)]


def run(bench, name, *more):
    return in_process(*arguments(bench, name, *more))


def weights(ranker):
    return {
        name: array.tobytes() for name, array in load_file(ranker / "model.safetensors").items()
    }


def test_a_recipe_becomes_a_ranker_with_all_that_is_known_of_it(bench):
    made = json.loads(run(bench, "ranker", "--json"))
    assert [phase["name"] for phase in made["phases"]] == ["pointwise", "listwise"]
    assert made["phases"][1]["metrics"]["steps"] == 24
    assert made["phases"][1]["data"]["train.parquet"].startswith("sha256:")
    ranker = bench / "ranker"
    assert "scalar_learning_rate" in (ranker / "recipe.toml").read_text()
    card = (ranker / "README.md").read_text()
    assert "queries: invented" in card
    assert "sha256:" in card
    assert "## Licence" in card
    assert (ranker / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert str(bench) not in card + (ranker / "recipe.toml").read_text()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_killed_run_gives_the_same_weights_as_one_never_killed(bench, monkeypatch, kills):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as here: sums depend on how they are shared out
    run(bench, "whole")
    draw = random.Random()  # any moment will do
    for _ in range(kills):
        _kill(bench, saves=draw.randint(1, 3), seconds=draw.uniform(0, 0.1))
    secondlook(*arguments(bench, "killed", "--resume"))
    assert weights(bench / "killed") == weights(bench / "whole")


def _kill(bench, *, saves, seconds):
    """Start or continue the run, and kill it a moment after it has saved so many times."""
    command = [sys.executable, "-m", "secondlook", *arguments(bench, "killed", "--resume")]
    before = _saved(bench / "killed.work")
    process = subprocess.Popen(command, env=os.environ, stderr=subprocess.PIPE)
    seen = set()
    while process.poll() is None and len(seen) < saves:
        seen |= _saved(bench / "killed.work") - before
        time.sleep(0.002)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, f"it was over before it was killed: {said!r}"


def _saved(work):
    return {path.parent for path in work.glob("*.work/run/checkpoint-*/whole.json")}


def test_an_earlier_run_is_not_touched_without_resume_nor_by_another_recipe(bench):
    run(bench, "ranker")
    with pytest.raises(CheckpointProblem, match="is there already"):
        run(bench, "ranker")
    (bench / "my.toml").write_text(RECIPE.replace("seed = 5", "seed = 6"))
    with pytest.raises(SecondlookError, match="another recipe"):
        run(bench, "ranker", "--resume")


WARM = """
base = "some/where"

[[phases]]
phase = "warm"
"""


def test_resuming_what_is_finished_leaves_the_ranker_as_it_is_now(bench):
    (bench / "my.toml").write_text(WARM)
    run(bench, "ranker")
    (bench / "ranker" / "onnx").mkdir()
    settings = bench / "ranker" / "secondlook.json"
    tuned = json.loads(settings.read_text()) | {"fusion": {"weight": 0.3}}
    settings.write_text(json.dumps(tuned))
    run(bench, "ranker", "--resume")
    assert json.loads(settings.read_text()) == tuned
    assert (bench / "ranker" / "onnx").is_dir()


@pytest.mark.parametrize("left", ["nothing of the run", "a phase unfinished"])
def test_resuming_does_not_replace_a_ranker_it_did_not_make(bench, left):
    (bench / "my.toml").write_text(RECIPE.replace("epochs", "max_steps"))
    run(bench, "ranker")
    if left == "nothing of the run":
        shutil.rmtree(bench / "ranker.work")
    else:
        shutil.rmtree(bench / "ranker.work" / "02-listwise")
    before = weights(bench / "ranker")
    with pytest.raises(CheckpointProblem, match="is there already"):
        run(bench, "ranker", "--resume")
    assert weights(bench / "ranker") == before


def test_a_dry_run_says_what_would_happen_and_writes_nothing(bench):
    before = sorted(path.name for path in bench.iterdir())
    said = run(bench, "ranker", "--dry-run")
    assert "1. pointwise: 24 queries, 18 steps, 144 pairs" in said
    assert "2. listwise: 24 queries, 24 steps, 384 pairs" in said
    assert re.search(r"in all about \d+ s", said)
    assert sorted(path.name for path in bench.iterdir()) == before


def test_a_missing_group_file_is_said_before_anything_is_done(bench):
    (bench / "dev.parquet").unlink()
    with pytest.raises(MalformedInput, match="secondlook mine"):
        run(bench, "ranker")
    assert not (bench / "ranker.work").exists()


EXACT = """
base = "some/where"

[data]
train = ["train.parquet"]
validation = "dev.parquet"

[[phases]]
phase = "pointwise"
batch = 4
learning_rate = 1e-3
dropout = 0.0
forward_tokens = 24
precision = "fp32"
"""


@pytest.mark.timeout(300)
def test_two_processes_train_the_ranker_that_one_would_with_a_batch_twice_as_large(
    bench, monkeypatch
):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (bench / "my.toml").write_text(EXACT)
    run(bench, "one")
    (bench / "my.toml").write_text(EXACT.replace("batch = 4", "batch = 2"))
    done = subprocess.run(
        _by_two(bench, "two"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    start, one, two = (
        load_file(bench / name / "model.safetensors")["bert.encoder.layer.1.output.dense.weight"]
        for name in ("one.work/00-start", "one", "two")
    )
    assert abs(one - start).max() > 1e-3
    assert abs(two - one).max() < 1e-4


ADAPT = """
base = "some/where"

[[phases]]
phase = "adapt"
corpus = "corpus.jsonl"
batch = 3
at_once = 3
epochs = 2
head_steps = 2
"""


@pytest.mark.timeout(300)
def test_two_processes_adapt_to_a_corpus_in_half_the_steps(bench, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (bench / "my.toml").write_text(ADAPT)
    text = "The tide is deep. Fish in a river. What cape of fear?"
    write_corpus(bench / "corpus.jsonl", [Document(str(number), text) for number in range(20)])
    done = subprocess.run(_by_two(bench, "two"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (phase,) = open_checkpoint(bench / "two").settings.lineage.phases
    assert (phase.metrics["documents"], phase.metrics["steps"]) == (18, 6)


@pytest.mark.slow  # a kill of one process, and two processes, are tested by themselves
@pytest.mark.timeout(600)
def test_one_process_finishes_what_two_began_as_two_would_have(bench, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (bench / "my.toml").write_text(EXACT.replace("batch = 4", "batch = 2") + "validate_every = 2\n")
    begun = psutil.Popen(_by_two(bench, "killed"), stderr=subprocess.DEVNULL)
    while begun.poll() is None and not _saved(bench / "killed.work"):
        time.sleep(0.002)
    processes = [begun, *begun.children(recursive=True)]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes)  # a process that is still dying holds its lock
    assert not (bench / "killed").exists(), "it was over before it was killed"
    run(bench, "killed", "--resume")
    (bench / "my.toml").write_text(EXACT + "validate_every = 2\n")
    run(bench, "one")
    killed, one = (
        load_file(bench / name / "model.safetensors")["bert.encoder.layer.1.output.dense.weight"]
        for name in ("killed", "one")
    )
    assert abs(killed - one).max() < 1e-4


def test_processes_without_ray_are_torchruns_affair(bench):
    said = in_process(*arguments(bench, "x", "--processes", "2"), fails=True)
    # the box around an error breaks lines where the path ends: another place on every machine
    assert "torchrun --nproc-per-node 2" in " ".join(said.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="pip install 'ray[train]'")
@pytest.mark.timeout(1200)
def test_two_workers_of_ray_train_the_ranker_that_one_process_would(bench, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # as likely to get a turn as other processes
    (bench / "my.toml").write_text(EXACT)
    run(bench, "one")
    (bench / "my.toml").write_text(EXACT.replace("batch = 4", "batch = 2"))
    said = secondlook(*arguments(bench, "two", "--ray", "local", "--processes", "2"))
    assert "pointwise: steps" in said
    one, two = (
        load_file(bench / name / "model.safetensors")["bert.encoder.layer.1.output.dense.weight"]
        for name in ("one", "two")
    )
    assert abs(two - one).max() < 1e-4
    assert "phase 1 of 1: pointwise" in (bench / "two.work" / "train.log").read_text()
    assert not list(bench.glob(".*"))


def _by_two(bench, name):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    torchrun += ["--master-addr", "127.0.0.1", "--master-port", str(_free_port())]
    return [*torchrun, "-m", "secondlook", *arguments(bench, name)]


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
