"""Generate, and tune without judgments, as a newcomer would call them."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import tiny
from secondlook.cli import app
from secondlook.data import read_qrels, read_queries, write_corpus
from secondlook.data.origin import read_origin
from secondlook.types import Document
from secondlook.workflows.tune_stages import Tuning

RNG = random.Random(4)
WORDS = [one + other for one in "bcdfgh" for other in "klmnpq"]
CORPUS = [Document(f"d{n}", " ".join(RNG.sample(WORDS, 6))) for n in range(40)]


class Copyist:
    """Asks two words of a passage, and once in three something that is not in it."""

    def __init__(self, model, count, *, top_k, seed, device=None):
        self.count = count

    def __call__(self, passages):
        return [
            tuple(
                "zzzzz" if n % 3 == 2 else " ".join(text.split()[n : n + 2])
                for n in range(self.count)
            )
            for _, text in passages
        ]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A corpus, and an expander that was never trained."""
    monkeypatch.setattr(
        "secondlook.workflows.export.export", lambda *_, **__: SimpleNamespace(summary=str)
    )
    folder = tmp_path / "data"
    folder.mkdir()
    write_corpus(folder / "corpus.jsonl", CORPUS)
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    from secondlook.model.doc2query import new_expander, save_expander

    save_expander(new_expander(base, 40, 8), tmp_path / "expander")
    return folder


@pytest.fixture
def copyist(monkeypatch):
    """The network learns nothing in a second: somebody who can ask, in its place."""
    monkeypatch.setattr("secondlook.score.predicted_queries.PredictedQueries", Copyist)


def secondlook(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def generate(data, *more):
    index = data.parent / "index"
    if not index.exists():
        assert secondlook("index", data / "corpus.jsonl", index).exit_code == 0
    return secondlook(
        "generate", data / "corpus.jsonl", "--index", index, "--expander",
        data.parent / "expander", "-o", data.parent / "made", "--device", "cpu", *more,
    )  # fmt: skip


def test_a_network_asks(data):
    """At random, in letters: of passages that are all letters, some come back."""
    write_corpus(
        data / "corpus.jsonl", [Document(f"d{n}", " ".join("bcdfghjk"[n:])) for n in range(8)]
    )
    done = generate(data, "-n", 20)
    assert done.exit_code == 0, done.output or done.exception
    asked = (data.parent / "made" / "generated.jsonl").read_text().splitlines()
    assert 0 < len(read_qrels(data.parent / "made")) < len(asked)


@pytest.mark.usefixtures("copyist")
def test_what_finds_its_passage_is_kept_and_all_is_listed(data):
    done = generate(data, "--passages", 20)
    assert done.exit_code == 0, done.output or done.exception
    made = data.parent / "made"
    asked = [json.loads(line) for line in (made / "generated.jsonl").read_text().splitlines()]
    assert len({one["doc_id"] for one in asked}) == 20
    assert all((one["rank"] is None) == (one["query"] == "zzzzz") for one in asked)
    kept = {query.text for query in read_queries(made)}
    assert kept == {one["query"] for one in asked if one["rank"] is not None}
    assert read_qrels(made).keys() == {query.id for query in read_queries(made)}
    origin = read_origin(made / "qrels" / "train.tsv")
    assert origin.endswith("of 60 by expander, those whose passage is in the top 10 of BM25")


@pytest.mark.usefixtures("copyist")
def test_a_ranker_can_look_too(data):
    assert secondlook("warm", data.parent / "base", "-o", data.parent / "ranker").exit_code == 0
    assert generate(data, "--within", 1).exit_code == 0
    one = {query.id for query in read_queries(data.parent / "made")}
    done = generate(data, "--within", 1, "--ranker", data.parent / "ranker")
    assert done.exit_code == 0, done.output or done.exception
    assert "in the top 1 of BM25, re-ranked by ranker" in done.stdout
    assert {query.id for query in read_queries(data.parent / "made")} != one


@pytest.mark.usefixtures("copyist")
def test_when_nothing_comes_back_it_says_so(data, monkeypatch):
    monkeypatch.setattr(Copyist, "__call__", lambda self, passages: [("zzzzz",)] * len(passages))
    done = generate(data)
    assert done.exit_code == 1
    assert "none of 40 generated queries retrieved its passage" in str(done.exception)


@pytest.mark.usefixtures("copyist")
def test_tune_learns_from_generated_queries_and_says_so(data, monkeypatch):
    monkeypatch.setattr(Tuning, "_candidates", lambda _: ["trained"])
    out = data.parent / "out"
    done = secondlook(
        "tune", data, "-o", out, "--expander", data.parent / "expander", "--base",
        data.parent / "base", "--minutes", 5, "--depth", 10, "--device", "cpu", "--ship",
    )  # fmt: skip
    assert done.exit_code == 0, done.output or done.exception
    assert "verdict is based on generated queries:" in done.stdout
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["labels"].startswith("generated queries: ")
    phases = json.loads((out / "ranker" / "secondlook.json").read_text())["lineage"]["phases"]
    assert phases[-1]["labels"].startswith("generated queries: ")
    assert "generated queries" in (out / "ranker" / "README.md").read_text()


def test_clicks_and_generated_queries_are_not_mixed(data):
    done = secondlook("tune", data, "-o", data / "out", "--clicks", "log", "--expander", "some")
    assert done.exit_code == 2
    assert "cannot be combined with --expander" in done.output
