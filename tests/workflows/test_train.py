"""Training by a recipe, as a program calls it."""

from __future__ import annotations

import json
import pickle
from io import StringIO

import pytest

import tiny
from invented import invent
from secondlook import Ranker
from secondlook.errors import WrongArgument
from secondlook.train.groups import write_groups
from secondlook.train.log import logged
from secondlook.workflows.train import plan, train

RECIPE = """
base = "some/where"

[data]
train = ["train.parquet"]
validation = "dev.parquet"

[[phases]]
phase = "pointwise"
batch = 4
max_steps = 3
learning_rate = 1e-3
validate_every = 3
"""


@pytest.fixture
def given(tmp_path):
    """A recipe, and its data in another folder."""
    (tmp_path / "groups").mkdir()
    (tmp_path / "my.toml").write_text(RECIPE)
    write_groups(tmp_path / "groups" / "train.parquet", invent(12, seed=1), about={})
    write_groups(tmp_path / "groups" / "dev.parquet", invent(4, seed=2), about={})
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    return tmp_path, {"base": base, "data": str(tmp_path / "groups"), "device": "cpu"}


def test_a_recipe_is_planned_and_trained(given, capsys):
    folder, options = given
    before, seen = set(folder.iterdir()), []
    estimate = plan(str(folder / "my.toml"), **options)
    assert set(folder.iterdir()) == before
    assert "1. pointwise: 12 queries, 3 steps" in estimate.summary()
    assert json.loads(json.dumps(estimate.to_dict()))["phases"][0]["steps"] == 3
    result = train(
        folder / "my.toml",
        folder / "ranker",
        **options,
        progress=lambda *step: seen.append(step),
    )
    assert result.settings == Ranker.load(result.ranker, device="cpu").settings
    (phase,) = json.loads(json.dumps(result.to_dict()))["phases"]
    assert phase["metrics"]["steps"] == 3
    assert result.summary().startswith(f"{folder / 'ranker'}: trained from base\n  pointwise: ")
    assert seen == [("training", done, 3) for done in range(4)]
    assert capsys.readouterr().out == ""


def test_processes_without_a_cluster_are_refused(given):
    folder, options = given
    with pytest.raises(WrongArgument, match="2 processes need `ray`"):
        train(folder / "my.toml", folder / "ranker", **options, processes=2)


def test_a_worker_of_a_cluster_trains_from_what_it_is_sent_and_logs(given, monkeypatch):
    """In this process, for Ray: what is sent must survive being sent."""
    folder, options = given
    called = {}

    def in_place(address, processes, work, **more):
        called.update(more, address=address, processes=processes)
        monkeypatch.chdir("/")  # a worker starts elsewhere
        pickle.loads(pickle.dumps(work))()

    monkeypatch.setattr("secondlook.scale.train.train_together", in_place)
    monkeypatch.chdir(folder)
    options |= {"base": "base", "data": "groups"}
    train("my.toml", folder / "ranker", **options, ray="local", processes=1)
    assert Ranker.load(folder / "ranker", device="cpu").settings.lineage.base == "base"
    assert (called["address"], called["processes"]) == ("local", 1)
    log = (folder / "ranker.work" / "train.log").read_text()
    assert "phase 1 of 1: pointwise\n" in log
    assert "training 3/3" in log


def test_a_log_has_messages_and_figures(monkeypatch):
    monkeypatch.setattr("secondlook.progress.FIRST_LINE_AFTER", 60)
    written = StringIO()
    with logged(written) as watch:
        watch.say("phase 1 of 1: pointwise")
        watch.begin("pointwise", 8, done=2)
        watch.step(4, {"loss": 0.25})
        watch.step(0, {"nDCG@10": 0.5})
    first, second = written.getvalue().splitlines()
    assert first == "phase 1 of 1: pointwise"
    assert second.startswith("pointwise 3/8 · loss 0.2500 · nDCG@10 0.5000 · ")
