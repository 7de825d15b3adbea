"""Weigh, as a newcomer would call it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import tiny
from secondlook.cli import app
from secondlook.data import read_corpus, write_corpus, write_qrels, write_queries
from secondlook.errors import SecondlookError
from secondlook.types import Document, Query

WORDS = "cape fear river tide fish".split()
CORPUS = [
    Document(f"d{n}", f"the {one} and {other} of the deep sea", "bogue" if n % 2 else "")
    for n, (one, other) in enumerate((one, other) for one in WORDS for other in WORDS)
]


def secondlook(*arguments, fails=False):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if fails:
        assert isinstance(done.exception, SecondlookError)
        return str(done.exception)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weigh")
    write_corpus(folder / "corpus.jsonl", CORPUS)
    queries = [Query(f"q{n}", f"what is {doc.text.split()[1]}") for n, doc in enumerate(CORPUS)]
    write_queries(folder / "queries.jsonl", queries)
    write_qrels(folder / "qrels.tsv", {f"q{n}": {f"d{n}": 1} for n in range(len(CORPUS))})
    tiny.save(tiny.encoder(), folder / "base")
    given = [folder / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    said = secondlook(
        "weigh", "train", *given, "--base", folder / "base", "-o", folder / "weigher",
        "--max-steps", 4, "--max-length", 40, "--device", "cpu",
    )  # fmt: skip
    assert "error of the mean" in said
    assert not (folder / "weigher.work").exists()
    return folder


def test_a_weighed_corpus_is_the_corpus_with_weights_and_both_looks_use_it(data):
    out = data / "weighed.jsonl.gz"
    said = secondlook("weigh", data / "corpus.jsonl", "--weigher", data / "weigher", "-o", out)
    assert "25 documents weighed" in said
    made = list(read_corpus(out))
    assert [(one.id, one.title, one.text) for one in made] == [
        (one.id, one.title, one.text) for one in CORPUS
    ]
    assert all(one.weights is not None for one in made)
    assert any(one.weights for one in made)
    secondlook("index", out, data / "index", "--k1", 30)
    word = next(word for one in made for word in one.weights)
    found = json.loads(secondlook("search", data / "index", word, "--json", "-k", 1))
    assert "deep sea" in found[0]["text"]


def test_what_is_there_already_is_not_trained_over(data):
    given = [data / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    complaint = secondlook(
        "weigh", "train", *given, "--base", data / "base", "-o", data / "weigher", fails=True
    )
    assert "there already" in complaint


DRIVER = """
import os, signal, sys
from secondlook.cli import main, weigh
from secondlook.data.partial import PartialLines

weigh._AT_ONCE = 10
append, left = PartialLines.append, [int(sys.argv.pop(1))]

def append_and_die(file, rows, items):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    append(file, rows, items)

PartialLines.append = append_and_die
main()
"""


def test_killed_it_goes_on_to_the_same_file(data):
    def drive(batches, out):
        given = ["weigh", data / "corpus.jsonl", "--weigher", data / "weigher", "-o", data / out]
        command = [sys.executable, "-c", DRIVER, batches, *given]
        return subprocess.run(list(map(str, command)), check=False, env=os.environ).returncode

    assert drive(9, "whole.jsonl.gz") == 0
    assert drive(1, "killed.jsonl.gz") == -signal.SIGKILL
    assert not (data / "killed.jsonl.gz").exists()
    assert drive(2, "killed.jsonl.gz") == 0  # two batches were left
    assert (data / "killed.jsonl.gz").read_bytes() == (data / "whole.jsonl.gz").read_bytes()
    assert not list(data.glob(".*"))
