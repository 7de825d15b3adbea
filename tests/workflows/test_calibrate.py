"""Calibration, as a program calls it."""

from __future__ import annotations

import json

import pytest

import tiny
from command_line import writing
from secondlook.data import write_qrels, write_run
from secondlook.errors import OutputInUse, WrongArgument
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.network import new_warm, save_model
from secondlook.score.raw import RAW_TAG
from secondlook.types import Hit, Ranking
from secondlook.workflows.calibrate import calibrate

QUERIES = [f"q{n}" for n in range(10)]


@pytest.fixture
def ranker(tmp_path):
    save_model(new_warm(tiny.save(tiny.encoder(), tmp_path / "base")), tmp_path / "ranker")
    return tmp_path / "ranker"


def test_a_run_and_judgments_give_probabilities(ranker, capsys):
    folder, seen = ranker.parent, []
    hits = [Hit(f"d{n}", float(5 - n)) for n in range(6)]
    write_run(folder / "raw.trec", [Ranking.of(query, hits) for query in QUERIES], tag=RAW_TAG)
    write_qrels(folder / "qrels.tsv", {query: {"d0": 1, "d1": 1} for query in QUERIES})
    result = calibrate(
        str(ranker),
        run=folder / "raw.trec",
        qrels=str(folder / "qrels.tsv"),
        progress=lambda *step: seen.append(step),
    )
    assert result.calibration == open_checkpoint(ranker).settings.calibration
    assert result.error_after < result.error_before
    assert "platt scaling from 60 pairs (20 relevant)" in result.summary()
    assert json.loads(json.dumps(result.to_dict()))["ece_after"] == result.error_after
    assert seen == [("reading run and judgments", 0, None)]
    assert capsys.readouterr() == ("", "")


def test_without_judgments_the_scale_is_of_texts(ranker, capsys):
    corpus, seen = ranker.parent / "corpus.jsonl", []
    rows = [{"_id": f"d{n}", "title": f"title {n}", "text": "the deep sea " * n} for n in range(24)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = calibrate(ranker, corpus=corpus, progress=lambda *step: seen.append(step))
    assert result.fitted_on.source == "corpus"
    assert "ece_after" not in result.to_dict()
    assert seen[-1] == ("reading", 24, None)
    assert calibrate(ranker).fitted_on.source == "reference pairs"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("given", [{"run": "r"}, {"run": "r", "qrels": "q", "corpus": "c"}])
def test_arguments_that_do_not_go_together_are_named_as_arguments(ranker, given):
    with pytest.raises(WrongArgument, match="a `run` needs `qrels`") as problem:
        calibrate(ranker, **given)
    assert "--" not in str(problem.value)


def test_qrels_alone_are_refused(ranker):
    with pytest.raises(WrongArgument, match="`qrels` needs a `run`"):
        calibrate(ranker, qrels="qrels.tsv")


def test_a_ranker_that_another_process_writes_is_left_alone(ranker):
    before = open_checkpoint(ranker).settings
    with writing(ranker), pytest.raises(OutputInUse, match="process"):
        calibrate(ranker)
    assert open_checkpoint(ranker).settings == before
