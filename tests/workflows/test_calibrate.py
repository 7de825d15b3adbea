"""Calibration, as a program calls it."""

from __future__ import annotations

import json

import pytest

import tiny
from command_line import writing
from secondlook.data import write_corpus, write_qrels, write_queries, write_run
from secondlook.errors import OutputInUse, SecondlookError, WrongArgument
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.network import new_warm, save_model
from secondlook.score.raw import RAW_TAG
from secondlook.types import Document, Hit, Query, Ranking
from secondlook.workflows.calibrate import calibrate
from secondlook.workflows.documents import scale_pairs

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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"run": "r", "qrels": "q", "queries": "u"}, "`queries` are of a `corpus`"),
        ({"kind": "platt"}, "`kind` is that of probabilities"),
        ({"corpus": "c", "queries": "u", "qrels": "q", "kind": "isotonic"}, "needs a `run`"),
        ({"relevant_from": 1}, "`relevant_from` .* needs `qrels`"),
        ({"corpus": "c", "qrels": "q"}, "a `corpus` and `queries`"),
    ],
)
def test_arguments_without_an_effect_are_refused(ranker, given, said):
    with pytest.raises(WrongArgument, match=said):
        calibrate(ranker, **given)


def test_texts_are_related_from_the_grade_on_that_is_given(tmp_path):
    documents = [Document(f"d{n}", f"the deep sea {n}") for n in range(30)]
    asked = [Query(f"q{n}", f"how deep {n}") for n in range(30)]
    grades = {f"q{n}": {f"d{n}": 1, f"d{(n + 1) % 30}": 2} for n in range(30)}
    write_corpus(tmp_path / "corpus.jsonl", documents)
    write_queries(tmp_path / "queries.jsonl", asked)
    write_qrels(tmp_path / "qrels.tsv", grades)
    files = [tmp_path / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    for grade in (1, 2):
        pairs = scale_pairs(*files, grade)
        assert {grades[query.id][document.id] for query, document in pairs.related} == {grade}
        assert all(document.id not in grades[query.id] for query, document in pairs.unrelated)


def test_qrels_alone_are_refused(ranker):
    with pytest.raises(WrongArgument, match="`qrels` needs a `run`"):
        calibrate(ranker, qrels="qrels.tsv")


def test_a_run_of_ranks_alone_is_refused(ranker):
    folder, before = ranker.parent, open_checkpoint(ranker).settings
    hits = [Hit(f"d{n}", float(5 - n)) for n in range(6)]
    write_run(folder / "raw.tsv", [Ranking.of(query, hits) for query in QUERIES])
    write_qrels(folder / "qrels.tsv", {query: {"d0": 1, "d1": 1} for query in QUERIES})
    with pytest.raises(SecondlookError, match="ranks and no scores"):
        calibrate(ranker, run=folder / "raw.tsv", qrels=folder / "qrels.tsv")
    assert open_checkpoint(ranker).settings == before


def test_a_ranker_that_another_process_writes_is_left_alone(ranker):
    before = open_checkpoint(ranker).settings
    with writing(ranker), pytest.raises(OutputInUse, match="process"):
        calibrate(ranker)
    assert open_checkpoint(ranker).settings == before
