"""Expand, as a newcomer would call it."""

from __future__ import annotations

import json

import pytest

import tiny
from command_line import check_a_kill
from command_line import in_process as secondlook
from invented import DEEP_SEA, write_deep_sea
from secondlook.data import read_corpus, write_corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expand")
    given = write_deep_sea(folder)
    tiny.save(tiny.encoder(), folder / "base")
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
        (one.id, one.title, one.text) for one in DEEP_SEA
    ]
    assert all(len(one.queries) <= 3 for one in made)
    assert any(one.queries for one in made)
    secondlook("index", data / "expanded.jsonl.gz", data / "index", "--replace")
    found = json.loads(secondlook("search", data / "index", "fish", "--json", "-k", 25))
    texts = {one.id: one.text for one in DEEP_SEA}
    assert all(hit["text"] == texts[hit["id"]] for hit in found)


def test_draws_are_the_documents_own_whatever_stands_beside_it(data):
    write_corpus(data / "few.jsonl", DEEP_SEA[20:])
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
    assert [one.id for one in kept] == [one.id for one in DEEP_SEA]
    assert 0 < sum(len(one.queries) for one in kept) <= 0.5 * len(every)


@pytest.mark.slow  # rerank and teach go on by the same code, and are killed in CI
def test_killed_it_goes_on_to_the_same_file(data):
    given = [data / "corpus.jsonl", "--expander", data / "expander", "-n", 2]
    check_a_kill(data / "killed.jsonl.gz", "secondlook.workflows.expand._AT_ONCE", "expand", *given)


def test_what_is_no_expander_is_refused_before_the_corpus_is_read(data):
    given = [data / "no such corpus.jsonl", "--expander", data / "base", "-o", data / "x.jsonl"]
    assert "expand train" in secondlook("expand", *given, fails=True)
