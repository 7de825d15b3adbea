"""Killed, interrupted or out of disk at any moment: the same command again makes the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

import pytest

import tiny
from command_line import in_process
from interruptible import first_word, start
from invented import invent
from secondlook.train.groups import write_groups

LETTERS = "bcdefghijklmnopqrstuvwxyz"
LATEST_FIRST_LINE = 5.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
"""Seconds; the first line is due after 2, and later where other work holds the machine up."""
SURELY = 4096
"""Bytes left on a full disk: one block, so that an empty file can still be made."""
RECIPE = """
base = "base"
seed = 5

[encode]
strm = {strm}

[data]
train = ["train.parquet"]
validation = "dev.parquet"

[[phases]]
phase = "listwise"
negatives = 3
batch = 4
max_steps = {steps}
learning_rate = 1e-3
validate_every = 5
"""


@dataclass(frozen=True)
class Verb:
    """A long verb; its paths are in a folder of its own, beside `given`."""

    arguments: str
    output: str
    """What is compared; made in the verb's folder."""
    begun: str | None = None
    """What is copied from `given` to begin with, where the verb changes something."""
    again: str = ""
    """What the second command has in addition."""
    leaves_out: tuple[str, ...] = ()
    """Files of the output that hold times, places or, as OpenVINO's graphs do, names of nodes that
    are numbered anew in every process."""


GIVEN = "--index ../given/index --queries ../given/queries.jsonl"
VERBS = {
    "index": Verb("index ../given/large.jsonl out.index", "out.index"),
    "retrieve": Verb(
        "retrieve ../given/index ../given/queries.jsonl -k 100 -o run.trec", "run.trec"
    ),
    "rerank": Verb(
        f"rerank ../given/bm25.trec {GIVEN} --ranker ../given/ranker -o r.trec", "r.trec"
    ),
    "mine": Verb(
        "mine ../given/index ../given/queries.jsonl ../given/qrels/train.tsv -o g.parquet",
        "g.parquet",
    ),
    "train": Verb(
        "train ../given/train.toml -o out.ranker --base ../given/base --device cpu",
        "out.ranker",
        again="--resume",
    ),
    "tune": Verb(
        "tune ../given -o out --base ../given/base --depth 10 --minutes 60 --device cpu",
        "out/stages",
        leaves_out=(
            "asked.json",
            "experiment.toml",
            "plan.json",
            "outcome.json",
            "*.xml",
            "vectors/digests.json",  # in which such graphs are counted
        ),
    ),
    "weigh": Verb(
        "weigh ../given/corpus.jsonl --weigher ../given/weigher -o w.jsonl.gz", "w.jsonl.gz"
    ),
    "expand": Verb(
        "expand ../given/corpus.jsonl --expander ../given/expander -n 3 --device cpu -o e.jsonl.gz",
        "e.jsonl.gz",
    ),
    "generate": Verb(
        "generate ../given/corpus.jsonl --index ../given/index --expander ../given/expander "
        "--passages 150 --within 300 --device cpu -o made",
        "made",
    ),
    "teach": Verb(
        "teach ../given/train.parquet --teacher ../given/ranker -o t.parquet", "t.parquet"
    ),
    "export": Verb("export ranker --to openvino", "ranker", begun="ranker"),
    "calibrate": Verb(
        "calibrate ranker --run ../given/bm25.trec --qrels ../given/judged.tsv",
        "ranker",
        begun="ranker",
    ),
    "ablate": Verb(
        "ablate ../given/ablate.toml -o out --test ../given/dev.parquet --seeds 1 "
        "--base ../given/base --device cpu",
        "out",
    ),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Documents of letters, queries for them, and everything a verb starts from."""
    folder = tmp_path_factory.mktemp("interrupted") / "given"
    (folder / "qrels").mkdir(parents=True)
    draw = random.Random(3)
    texts = {f"d{n}": draw.choices(LETTERS, k=9) for n in range(300)}
    _write(folder / "corpus.jsonl", {key: " ".join(words) for key, words in texts.items()})
    _write(
        folder / "large.jsonl",
        {f"d{n}": " ".join(draw.choices(LETTERS, k=30)) for n in range(20_000)},
    )
    asked = list(texts.items())[:60]
    _write(
        folder / "queries.jsonl",
        {f"q{key}": " ".join(draw.sample(words, 3)) for key, words in asked},
    )
    header = "query-id\tcorpus-id\tscore\n"
    rows = [f"q{key}\t{key}\t1\n" for key, _ in asked]
    (folder / "qrels" / "train.tsv").write_text(header + "".join(rows))
    tiny.save(tiny.encoder(), folder / "base")
    in_process("warm", folder / "base", "-o", folder / "ranker")
    in_process("index", folder / "corpus.jsonl", folder / "index")
    in_process(
        "retrieve",
        folder / "index",
        folder / "queries.jsonl",
        "-k",
        100,
        "-o",
        folder / "bm25.trec",
    )
    hits = [line.split()[:3:2] for line in (folder / "bm25.trec").read_text().splitlines()]
    judged = [f"{query}\t{doc}\t{int(query == 'q' + doc)}\n" for query, doc in hits[::3]]
    (folder / "judged.tsv").write_text(header + "".join(sorted({*judged, *rows})))
    write_groups(folder / "train.parquet", invent(96, seed=1), about={})
    write_groups(folder / "dev.parquet", invent(24, seed=2), about={})
    (folder / "train.toml").write_text(RECIPE.format(strm="false", steps=40))
    (folder / "ablate.toml").write_text(RECIPE.format(strm="true", steps=10))
    from secondlook.model.deepct import new_weigher, save_weigher
    from secondlook.model.doc2query import new_expander, save_expander

    save_expander(new_expander(folder / "base", 40, 8), folder / "expander")
    save_weigher(new_weigher(folder / "base", 40), folder / "weigher")
    return folder


def _write(path, texts):
    path.write_text(
        "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items())
    )


@pytest.fixture(scope="module")
def undisturbed(given):
    """Of a verb, made once: its output's digest, how long it took and how much it wrote."""
    known = {}

    def made(name):
        if name not in known:
            folder = _begun(given, name, given.parent / f"{name}.undisturbed")
            before, began = _size(folder), time.monotonic()
            process = start(folder, VERBS[name].arguments.split())
            first = first_word(process, folder / "said.txt")
            seconds = time.monotonic() - began
            assert process.exitcode in (0, 3), (folder / "said.txt").read_text()
            assert seconds < LATEST_FIRST_LINE or (first is not None and first < LATEST_FIRST_LINE)
            _no_halves(folder)
            known[name] = _digest(folder, VERBS[name]), seconds, _size(folder) - before
        return known[name]

    return made


def _begun(given, name, folder):
    folder.mkdir()
    if begun := VERBS[name].begun:
        shutil.copytree(given / begun, folder / begun)
    return folder


def _size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _digest(folder, verb):
    output = folder / verb.output
    files = [output] if output.is_file() else sorted(output.rglob("*"))
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.is_file() and not any(path.match(name) for name in verb.leaves_out)
    }


def _no_halves(folder):
    left = [path.name for path in folder.rglob(".*")]
    assert not [name for name in left if name.endswith((".half", ".lock", ".partial", ".json"))], (
        left
    )


OVER = ("is there already", "already exists", "is already an index")
"""How verbs refuse to repeat what is done."""


def _again(folder, verb):
    """The same command until it is through, as a person would: what is there is not made anew."""
    arguments = verb.arguments.split()
    if verb.again and (folder / f"{verb.output}.work").exists():
        arguments.append(verb.again)
    process = start(folder, arguments)
    process.join()
    said = (folder / "said.txt").read_text()
    assert "Traceback" not in said
    over = any(words in said for words in OVER)
    assert process.exitcode in (0, 3) or over, said


def check(folder, name, undisturbed, disturb):
    """Begin, disturb, begin again: the undisturbed bytes, and nothing half."""
    expected, seconds, _ = undisturbed(name)
    process = start(folder, VERBS[name].arguments.split())
    disturb(process, seconds)
    process.join()
    _again(folder, VERBS[name])
    _no_halves(folder)
    assert _digest(folder, VERBS[name]) == expected


def killed(fraction):
    def kill(process, seconds):
        process.join(fraction * seconds)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)

    return kill


DRAW = random.Random(11)
KILLS = [(name, round(DRAW.uniform(0.1, 0.98), 2)) for name in VERBS for _ in range(3)]
IN_CI = ("rerank", "index", "teach")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fraction"), KILLS)
def test_killed(given, undisturbed, tmp_path, name, fraction):
    folder = _beside(given, name)
    check(folder, name, undisturbed, killed(fraction))


@pytest.mark.parametrize("name", IN_CI)
def test_killed_once(given, undisturbed, name):
    check(_beside(given, name), name, undisturbed, killed(0.6))


def _beside(given, name):
    """A new folder from which `../given` is the same; random, for the kills of one verb."""
    return _begun(given, name, given.parent / f"{name}.{random.SystemRandom().getrandbits(32):08x}")


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_interrupted(given, undisturbed, name):
    folder = _beside(given, name)

    def press(process, seconds):
        process.join(0.6 * seconds)
        if not process.is_alive():
            return
        os.kill(process.pid, signal.SIGINT)
        process.join()
        said = (folder / "said.txt").read_text()
        assert process.exitcode in (130, 0, 3), said
        if process.exitcode == 130:  # else the work was over already
            assert "secondlook: stopped; " in said
            assert "Traceback" not in said

    check(folder, name, undisturbed, press)


@pytest.fixture
def small_disk(given):
    """A file system of its own, in the same place as the other folders."""
    disk = given.parent / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300m", "secondlook", disk],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        disk.rmdir()
        pytest.skip("no file system can be mounted here; needs root on Linux")
    (disk / "given").symlink_to(given)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)
    disk.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_out_of_disk(given, undisturbed, small_disk, name):
    _, _, written = undisturbed(name)
    folder = _begun(given, name, small_disk / name)
    (folder / "said.txt").symlink_to(given.parent / f"{name}.said.txt")  # on another disk
    filler = small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - max(0, int(0.4 * written) - SURELY))
    process = start(folder, VERBS[name].arguments.split())
    process.join()
    said = (folder / "said.txt").read_text()
    assert process.exitcode == 1, said
    assert "secondlook: " in said
    assert "Traceback" not in said
    filler.unlink()
    _again(folder, VERBS[name])
    _no_halves(folder)
    expected, _, _ = undisturbed(name)
    assert _digest(folder, VERBS[name]) == expected
