"""The tutorial is followed as it stands: in small by CI, as it is where the real base is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from shutil import copytree, which

import pytest

import tiny
from quickstart_sample import small_sample
from serve_command import free_port, served

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


def found(said):
    """The ids that the search API of the page gave."""
    (answer,) = (text for line, text in said.items() if line.startswith("curl"))
    return [hit["id"] for hit in json.loads(answer)["hits"]]


def test_the_tutorial_can_be_followed(tmp_path):
    """With a base of random weights and thirty questions, which need not make it better."""
    pytest.importorskip("fastapi")
    if which("curl") is None:
        pytest.skip("no curl")
    small_sample(tmp_path / SAMPLE)
    tiny.save(tiny.encoder(), tmp_path / BASE)
    port = free_port()
    lines = [re.sub(r"--minutes \d+", "--minutes 1 --ship", line) for line in steps()]
    lines = [
        f"{line} --port {port}" if line.startswith("secondlook serve") else line for line in lines
    ]
    lines = [line.replace("localhost:8080", f"127.0.0.1:{port}") for line in lines]
    said = follow(lines, tmp_path, seconds=600)
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
