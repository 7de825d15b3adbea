"""Weigh, as a newcomer would call it."""

from __future__ import annotations

import json

import pytest

import tiny
from command_line import check_a_kill
from command_line import in_process as secondlook
from invented import DEEP_SEA, write_deep_sea
from secondlook.data import read_corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weigh")
    given = write_deep_sea(folder)
    tiny.save(tiny.encoder(), folder / "base")
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
    assert "25 documents weighted" in said
    made = list(read_corpus(out))
    assert [(one.id, one.title, one.text) for one in made] == [
        (one.id, one.title, one.text) for one in DEEP_SEA
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


@pytest.mark.slow  # rerank and teach go on by the same code, and are killed in CI
def test_killed_it_goes_on_to_the_same_file(data):
    given = [data / "corpus.jsonl", "--weigher", data / "weigher"]
    check_a_kill(data / "killed.jsonl.gz", "secondlook.workflows.weigh._AT_ONCE", "weigh", *given)
