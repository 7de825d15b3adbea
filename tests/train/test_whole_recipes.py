"""Recipes of several phases, from base to ranker, with two-layer encoders."""

import json

import pytest

from invented import invent
from secondlook.data import write_corpus
from secondlook.score.ranker import Ranker
from secondlook.train.groups import write_groups
from secondlook.train.recipe import read_recipe, resolved
from secondlook.train.run import job, train
from secondlook.types import Document, Query

DRBERT = """
base = "base"
[encode]
strm = true
max_length = 48
[data]
train = ["train.parquet"]
validation = "dev.parquet"
[[phases]]
phase = "adapt"
corpus = "corpus.jsonl"
max_steps = 2
head_steps = 2
batch = 4
[[phases]]
phase = "pointwise"
max_steps = 2
batch = 4
[[phases]]
phase = "denoise"
positives_above = 0.5
[[phases]]
phase = "listwise"
max_steps = 2
batch = 4
"""
FROZEN = """
base = "base"
[data]
train = ["train.parquet"]
validation = "dev.parquet"
[[phases]]
phase = "frozen"
max_steps = 2
batch = 4
[phases.form]
hidden = 8
"""


def trained(folder, text):
    (folder / "recipe.toml").write_text(text)
    documents = [Document(str(n), "The sea is deep. A fish is in the river.") for n in range(20)]
    write_corpus(folder / "corpus.jsonl", documents)
    write_groups(folder / "train.parquet", invent(12), about={})
    write_groups(folder / "dev.parquet", invent(4, seed=1), about={})
    recipe = read_recipe(folder / "recipe.toml")
    ranker = folder / "ranker"
    settings = train(job(recipe, folder, ranker, base=folder / "base"))
    scores = Ranker.load(ranker).score([(Query("q", "sea"), Document("d", "the deep sea"))])
    assert scores.shape == (1,)
    assert settings.calibration.source == "training data"  # no ranker leaves without a scale
    assert settings.calibration.slope > 0
    return settings, ranker


@pytest.mark.usefixtures("base")
def test_the_phases_of_drbert_follow_each_other(tmp_path):
    settings, ranker = trained(tmp_path, DRBERT)
    phases = settings.lineage.phases
    assert [phase.name for phase in phases] == ["adapt", "pointwise", "denoise", "listwise"]
    assert list(phases[0].data) == ["corpus.jsonl"]
    assert {"perplexity", "perplexity at the start"} <= phases[0].metrics.keys()
    assert list(phases[2].data) == ["train.parquet"]
    assert list(phases[3].data) == ["denoised.parquet"]
    dropped = [json.loads(line) for line in (ranker / "dropped.jsonl").read_text().splitlines()]
    assert len(dropped) == phases[2].metrics["taken"]
    assert json.loads((ranker / "denoise.json").read_text()) == phases[2].metrics


@pytest.mark.usefixtures("base")
def test_a_ranker_over_frozen_features_is_a_ranker_like_any_other(tmp_path):
    settings, ranker = trained(tmp_path, FROZEN)
    assert settings.form == "frozen"
    assert settings.trained
    assert settings.frozen.hidden == 8
    recipe = read_recipe(ranker / "recipe.toml")
    assert recipe.phases[0].form.hidden == 8
    (tmp_path / "again.toml").write_text(resolved(recipe))
    assert read_recipe(tmp_path / "again.toml") == recipe
    # and it can be trained further
    recipe = read_recipe(tmp_path / "recipe.toml")
    settings = train(job(recipe, tmp_path, tmp_path / "further", base=ranker))
    assert [phase.name for phase in settings.lineage.phases] == ["frozen", "frozen"]
