"""Weighing and expanding a corpus, as a program calls them."""

from __future__ import annotations

import pytest
from transformers import TrainerCallback
from transformers.integrations import integration_utils

import tiny
from command_line import in_process
from invented import DEEP_SEA, write_deep_sea
from secondlook.data import read_corpus
from secondlook.errors import Unwritable
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
