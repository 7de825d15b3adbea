"""Weighing and expanding a corpus, as a program calls them."""

from __future__ import annotations

import numpy as np
import pytest
from transformers import TrainerCallback
from transformers.integrations import integration_utils

import tiny
from command_line import in_process
from invented import DEEP_SEA, write_deep_sea
from secondlook.data import read_corpus, write_corpus
from secondlook.errors import SecondlookError, Unwritable, WrongArgument
from secondlook.model.doc2query import new_expander, save_expander
from secondlook.score.ranker import Ranker
from secondlook.types import Document
from secondlook.workflows.expand import expand, train_expander
from secondlook.workflows.weigh import train_weigher, weigh

SMALL = {"max_steps": 2, "max_length": 40, "device": "cpu"}


@pytest.fixture
def files(tmp_path):
    """Corpus, queries, judgments, a base."""
    return [*write_deep_sea(tmp_path), tiny.save(tiny.encoder(), tmp_path / "base")]


@pytest.fixture
def tracked(monkeypatch):
    """What the experiment tracker `noted` was told of."""
    told = []

    class Noted(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            told.append(logs)

    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "noted", Noted)
    return told


def test_a_corpus_is_weighed_by_a_model_whose_training_was_tracked(files, tracked, capsys):
    folder, seen = files[0].parent, []
    trained = train_weigher(*files, folder / "weigher", **SMALL, report_to=["noted"])
    assert any("loss" in logs for logs in tracked)
    assert trained.summary().startswith(f"{folder / 'weigher'}: error ")
    assert trained.to_dict()["phases"][-1]["metrics"]["steps"] == 2
    out = folder / "weighed.jsonl"
    result = weigh(str(files[0]), trained.model, str(out), progress=lambda *step: seen.append(step))
    assert all(document.weights is not None for document in read_corpus(out))
    assert result.to_dict() == {"output": str(out), "documents": len(DEEP_SEA)}
    assert result.summary() == f"{out}: 25 documents weighted"
    assert seen[-1] == ("weighing", 25, 25)
    with pytest.raises(Unwritable) as problem:
        weigh(files[0], trained.model, out)
    assert "--" not in str(problem.value)
    assert capsys.readouterr().out == ""


def test_a_corpus_is_expanded_by_a_model_whose_training_was_tracked(files, tracked, capsys):
    folder, seen = files[0].parent, []
    trained = train_expander(
        *files, folder / "expander", **SMALL, max_query_length=8, report_to=["noted"]
    )
    assert any("loss" in logs for logs in tracked)
    out = folder / "expanded.jsonl"
    given = {"count": 2, "device": "cpu"}
    result = expand(
        files[0], str(trained.model), out, **given, progress=lambda *step: seen.append(step)
    )
    assert len(list(read_corpus(out))) == result.documents == 25
    assert result.summary() == f"{out}: 25 documents, 2 queries sampled for each"
    assert result.to_dict()["sampled"] == 2
    assert seen[-1] == ("expanding", 25, 25)
    assert capsys.readouterr().out == ""


@pytest.fixture
def expander(files, monkeypatch):
    """Whoever reads a passage asks for its first word, and for fish."""

    class Asks:
        def __init__(self, *_, **__):
            pass

        def __call__(self, passages):
            return [(f"what is {text.split()[0]}", "fish") for _, text in passages]

    monkeypatch.setattr("secondlook.score.predicted_queries.PredictedQueries", Asks)
    folder = files[0].parent / "expander"
    save_expander(new_expander(files[-1], 40, 8), folder)
    return folder


def test_an_expanded_corpus_keeps_the_queries_that_it_had(expander, tmp_path, monkeypatch):
    given = [Document("d1", "tide", "sea", ("ebb", "flood")), Document("d2", "cape fear")]
    write_corpus(tmp_path / "given.jsonl", given)
    expand(tmp_path / "given.jsonl", expander, tmp_path / "out.jsonl")
    one, two = read_corpus(tmp_path / "out.jsonl")
    assert one == Document("d1", "tide", "sea", ("ebb", "flood", "what is sea", "fish"))
    assert two.queries == ("what is cape", "fish")
    ranker = tiny.save(tiny.classifier(), tmp_path / "ranker")
    monkeypatch.setattr(
        Ranker, "score", lambda _, pairs: np.array([q.text == "fish" for q, _ in pairs], float)
    )
    expand(tmp_path / "given.jsonl", expander, tmp_path / "best.jsonl", ranker=ranker, keep=0.5)
    one, two = read_corpus(tmp_path / "best.jsonl")
    assert (one.queries, two.queries) == (("ebb", "flood", "fish"), ("fish",))


def test_a_share_of_queries_that_nothing_scores_is_refused(tmp_path):
    with pytest.raises(WrongArgument, match=r"`keep` .* `ranker`"):
        expand(tmp_path / "corpus.jsonl", "expander", tmp_path / "out.jsonl", keep=0.5)


def test_a_weighed_corpus_is_not_expanded_for_no_search_would_see_it(expander, tmp_path):
    given = [Document("d1", "tide"), Document("d2", "cape", weights={"cape": 31})]
    write_corpus(tmp_path / "given.jsonl", given)
    with pytest.raises(SecondlookError, match=r"'d2' has term weights.* weigh the expanded one"):
        expand(tmp_path / "given.jsonl", expander, tmp_path / "out.jsonl")
    assert not list(tmp_path.glob("*out.jsonl*"))


@pytest.mark.parametrize(
    ("workflow", "words"),
    [
        ("weigh.train_weigher", "weigh train corpus queries qrels --base base"),
        ("expand.train_expander", "expand train corpus queries qrels --base base"),
        ("train.train", "train my.toml"),
    ],
)
def test_every_training_takes_experiment_trackers(monkeypatch, workflow, words):
    given = {}

    class Result:
        def summary(self):
            return "trained"

    def note(*_, **options):
        given.update(options)
        return Result()

    monkeypatch.setattr(f"secondlook.workflows.{workflow}", note)
    trackers = ["--report-to", "mlflow", "--report-to", "wandb"]
    assert in_process(*words.split(), "-o", "out", *trackers) == "trained\n"
    assert given["report_to"] == ["mlflow", "wandb"]
