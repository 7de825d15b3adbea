"""The programs in examples/ use the public interface alone, and run on real weights."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import secondlook as sl
from quickstart_sample import small_sample
from serve_command import free_port, served

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


def test_there_is_one_for_each_task():
    tasks = {"search", "rerank", "train", "compare", "explain", "serve", "tune"}
    assert {program.stem for program in PROGRAMS} == tasks


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_it_uses_public_names_only(program):
    tree = ast.parse(program.read_text(encoding="utf-8"))
    modules = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else _names(node))
    }
    assert {name for name in modules if name.startswith("secondlook")} == {"secondlook"}
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "sl"
    }
    assert used
    assert used <= set(sl.__all__)


def _names(node):
    return [alias.name for alias in node.names]


def run(name, folder, *arguments):
    """What the example prints."""
    program = EXAMPLES / f"{name}.py"
    done = subprocess.run(
        [sys.executable, program, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert all(name.startswith("example.") for name in names), "a name of the reader's own data"
    return done.stdout


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "quickstart"
    small_sample(folder)
    return folder


def test_search(tmp_path):
    assert len(run("search", tmp_path).splitlines()) == 5


@pytest.mark.real
def test_rerank(tmp_path, minilm_folder):
    assert "re-ranked: p5548" in run("rerank", tmp_path, minilm_folder)


@pytest.mark.real
def test_compare(tmp_path, minilm_folder, sample):
    said = run("compare", tmp_path, minilm_folder, sample)
    assert "8 judged queries" in " ".join(said.split())
    assert (tmp_path / "example.reranked.trec").is_file()


@pytest.mark.real
def test_explain(tmp_path, minilm_folder):
    assert "Rhine" in run("explain", tmp_path, minilm_folder)


@pytest.mark.real
def test_train(tmp_path, minilm_folder, sample):
    said = run("train", tmp_path, minilm_folder, sample)
    assert (tmp_path / "example.trained" / "secondlook.json").is_file()
    assert "corpus_id" in said


@pytest.mark.real
def test_serve(tmp_path, minilm_folder, monkeypatch):
    pytest.importorskip("fastapi")
    port = free_port()
    monkeypatch.setitem(os.environ, "PORT", str(port))
    words = [sys.executable, EXAMPLES / "serve.py", minilm_folder]
    with served(words, tmp_path, port, patience=400):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/search",
            json.dumps({"query": "invaders of the Rhine", "k": 3}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            assert len(json.load(answer)["hits"]) == 3


@pytest.mark.real
def test_tune(tmp_path, minilm_folder, sample):
    said = run("tune", tmp_path, minilm_folder, sample, 1)
    assert any(verdict in said for verdict in ("helps", "hurts", "cannot tell"))
    assert (tmp_path / "example.tuned" / "report.html").is_file()
