"""Expand, as a newcomer would call it."""

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
from secondlook.types import Document, Query

WORDS = "cape fear river tide fish".split()
CORPUS = [
    Document(f"d{n}", f"the {one} and {other} of the deep sea", "bogue" if n % 2 else "")
    for n, (one, other) in enumerate((one, other) for one in WORDS for other in WORDS)
]


def secondlook(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output or done.exception
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expand")
    write_corpus(folder / "corpus.jsonl", CORPUS)
    queries = [Query(f"q{n}", f"what is {doc.text.split()[1]}") for n, doc in enumerate(CORPUS)]
    write_queries(folder / "queries.jsonl", queries)
    write_qrels(folder / "qrels.tsv", {f"q{n}": {f"d{n}": 1} for n in range(len(CORPUS))})
    tiny.save(tiny.encoder(), folder / "base")
    given = [folder / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    said = secondlook(
        "expand", "train", *given, "--base", folder / "base", "-o", folder / "expander",
        "--max-steps", 4, "--max-length", 40, "--max-query-length", 8, "--device", "cpu",
    )  # fmt: skip
    assert "perplexity" in said
    assert not (folder / "expander.work").exists()
    return folder


def expanded(data, out, *more):
    secondlook(
        "expand", data / "corpus.jsonl", "--expander", data / "expander", "-n", 3,
        "--device", "cpu", "-o", data / out, *more,
    )  # fmt: skip
    return list(read_corpus(data / out))


def test_queries_stand_beside_the_text_and_only_the_first_look_sees_them(data):
    made = expanded(data, "expanded.jsonl.gz")
    assert [(one.id, one.title, one.text) for one in made] == [
        (one.id, one.title, one.text) for one in CORPUS
    ]
    assert all(len(one.queries) <= 3 for one in made)
    assert any(one.queries for one in made)
    secondlook("index", data / "expanded.jsonl.gz", data / "index", "--replace")
    found = json.loads(secondlook("search", data / "index", "fish", "--json", "-k", 25))
    texts = {one.id: one.text for one in CORPUS}
    assert all(hit["text"] == texts[hit["id"]] for hit in found)


def test_draws_are_the_documents_own_whatever_stands_beside_it(data):
    write_corpus(data / "few.jsonl", CORPUS[20:])
    secondlook(
        "expand", data / "few.jsonl", "--expander", data / "expander", "-n", 3,
        "--device", "cpu", "-o", data / "few-expanded.jsonl",
    )  # fmt: skip
    alone = list(read_corpus(data / "few-expanded.jsonl"))
    assert alone == expanded(data, "all.jsonl")[20:]
    assert alone != expanded(data, "other.jsonl", "--seed", 2)[20:]


def test_a_ranker_keeps_the_best_share_of_the_queries(data):
    secondlook("warm", data / "base", "-o", data / "ranker")
    every = [query for one in expanded(data, "every.jsonl") for query in one.queries]
    given = ["--ranker", data / "ranker", "--keep", 0.4]
    kept = expanded(data, "kept.jsonl", *given)
    assert [one.id for one in kept] == [one.id for one in CORPUS]
    assert 0 < sum(len(one.queries) for one in kept) <= 0.5 * len(every)


DRIVER = """
import os, signal, sys
from secondlook.cli import main, expand
from secondlook.data.partial import PartialLines

expand._AT_ONCE = 10
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
        given = ["expand", data / "corpus.jsonl", "--expander", data / "expander", "-n", 2]
        command = [sys.executable, "-c", DRIVER, batches, *given, "-o", data / out]
        return subprocess.run(list(map(str, command)), check=False, env=os.environ).returncode

    assert drive(9, "whole.jsonl.gz") == 0
    assert drive(1, "killed.jsonl.gz") == -signal.SIGKILL
    assert not (data / "killed.jsonl.gz").exists()
    assert drive(2, "killed.jsonl.gz") == 0  # two batches were left
    assert (data / "killed.jsonl.gz").read_bytes() == (data / "whole.jsonl.gz").read_bytes()
    assert not list(data.glob(".*"))
