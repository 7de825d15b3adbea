"""The tutorial is followed as it stands: in small by CI, as it is where the real base is there."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copytree, which

import pytest

import tiny

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BASE = "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE = "examples/quickstart"


def steps():
    """The page's commands, in order; a backslash joins lines."""
    text = re.sub(r"\\\n\s*", "", PAGE.read_text(encoding="utf-8"))
    return re.findall(r"^    ((?:secondlook|curl|pip|git|cd) .*)$", text, re.MULTILINE)


def follow(lines, folder, *, seconds):
    """What each command printed. What it takes to get here (pip, git, cd) was done before."""
    said = {}
    with ExitStack() as running:
        for line in lines:
            words = shlex.split(line, comments=True)
            if words[0] in ("pip", "git", "cd"):
                continue
            if words[0] == "secondlook":
                words = [sys.executable, "-m", *words]
            if words[3:4] == ["serve"]:
                running.enter_context(served(words, folder))
                continue
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            said[line] = done.stdout
    return said


@contextmanager
def served(words, folder):
    """The server of the page, ready to be asked."""
    port = words[words.index("--port") + 1] if "--port" in words else "8080"
    with (folder / "serve.log").open("w") as log:
        server = subprocess.Popen(words, cwd=folder, stderr=log)
    try:
        for _ in range(600):
            assert server.poll() is None, (folder / "serve.log").read_text()
            try:
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/")
            except OSError:
                time.sleep(0.2)
                continue
            with page:
                assert "<title>" in page.read().decode()
            break
        yield
    finally:
        server.terminate()
        server.wait(30)


def found(said):
    """The ids that the search API of the page gave."""
    (answer,) = (text for line, text in said.items() if line.startswith("curl"))
    return [hit["id"] for hit in json.loads(answer)["hits"]]


def small_sample(folder):
    """A part of the sample: some questions of each split, and the paragraphs that answer them."""
    (folder / "qrels").mkdir(parents=True)
    wanted, asked = set(), set()
    for name, count in {"train": 16, "dev": 6, "test": 8}.items():
        header, *rows = (ROOT / SAMPLE / "qrels" / f"{name}.tsv").read_text().splitlines()
        (folder / "qrels" / f"{name}.tsv").write_text("\n".join([header, *rows[:count]]) + "\n")
        asked |= {row.split("\t")[0] for row in rows[:count]}
        wanted |= {row.split("\t")[1] for row in rows[:count]}
    for name, ids in {"corpus": wanted, "queries": asked}.items():
        whole = (ROOT / SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        kept = [line for line in whole if json.loads(line)["_id"] in ids]
        (folder / f"{name}.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")


def test_the_tutorial_can_be_followed(tmp_path):
    """With a base of random weights and thirty questions, which need not make it better."""
    pytest.importorskip("fastapi")
    if which("curl") is None:
        pytest.skip("no curl")
    small_sample(tmp_path / SAMPLE)
    tiny.save(tiny.encoder(), tmp_path / BASE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = [re.sub(r"--minutes \d+", "--minutes 0.1 --ship", line) for line in steps()]
    lines = [
        f"{line} --port {port}" if line.startswith("secondlook serve") else line for line in lines
    ]
    lines = [line.replace("localhost:8080", f"127.0.0.1:{port}") for line in lines]
    said = follow(lines, tmp_path, seconds=120)
    assert {line.split()[1] for line in said if line.startswith("secondlook")} >= {
        "index",
        "search",
        "warm",
        "tune",
    }
    assert found(said)
    assert json.loads((tmp_path / "tuned" / "verdict.json").read_text())["runs"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_tutorial_ends_with_a_better_ranker(tmp_path, minilm_folder, record_property):
    """Every command as it stands; the base lies where its name on the hub leads."""
    copytree(ROOT / SAMPLE, tmp_path / SAMPLE)
    (tmp_path / BASE).parent.mkdir()
    (tmp_path / BASE).symlink_to(minilm_folder)
    began = time.monotonic()
    said = follow(steps(), tmp_path, seconds=3000)
    record_property("minutes", (time.monotonic() - began) / 60)
    told = json.loads((tmp_path / "tuned" / "verdict.json").read_text())
    assert told["runs"][-1]["verdict"] == "helps"
    assert found(said)[0] == "p5548"  # the paragraph that the page speaks of
