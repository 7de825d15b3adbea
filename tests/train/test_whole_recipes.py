"""Recipes of several phases, from base to ranker, with two-layer encoders."""

import json
from shutil import rmtree

import pytest

from invented import invent
from secondlook.data import write_corpus
from secondlook.errors import MalformedInput, UnknownName
from secondlook.score.ranker import Ranker
from secondlook.train.groups import Groups, write_groups
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
def test_a_run_goes_on_though_its_data_and_its_work_have_been_moved(tmp_path, monkeypatch):
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    (tmp_path / "base").rename(before / "base")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("secondlook.train.run._finish", killed)
        with pytest.raises(KeyboardInterrupt):
            trained(before, DRBERT)
    rmtree(before / "ranker.work" / "04-listwise")  # as if killed just before this was saved
    state = before / "ranker.work" / "01-adapt.work" / "run" / "left"
    state.mkdir(parents=True)  # as if killed while the phase's states were being removed
    before.rename(after)
    write_groups_elsewhere(before)
    recipe = read_recipe(after / "recipe.toml")
    settings = train(job(recipe, after, after / "ranker", base=after / "base"), resume=True)
    made = Groups([after / "ranker.work" / "03-denoise.work" / "denoised.parquet"]).fingerprint
    phases = settings.lineage.phases
    assert phases[3].data == {"denoised.parquet": made}
    assert phases[1].data == {"train.parquet": Groups([after / "train.parquet"]).fingerprint}
    assert (after / "ranker" / "dropped.jsonl").is_file()
    assert not state.exists()


def write_groups_elsewhere(folder):
    """Other groups where the first ones were."""
    folder.mkdir()
    write_groups(folder / "train.parquet", invent(9, seed=8), about={})
    write_groups(folder / "dev.parquet", invent(3, seed=9), about={})


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('phase = "listwise"', 'phase = "listwise"\nmeasure = "nDGC@10"', "did you mean 'nDCG@10'"),
        ('phase = "pointwise"', 'phase = "pointwise"\nonly = ["trian.parquet"]', "'train.parquet'"),
        ('phase = "listwise"', 'phase = "listwise"\nonly = ["train.parquet"]', "denoised.parquet"),
    ],
)
@pytest.mark.usefixtures("base")
def test_a_wrong_name_in_a_later_phase_is_said_before_the_first_one(tmp_path, old, new, problem):
    with pytest.raises((MalformedInput, UnknownName), match=problem):
        trained(tmp_path, DRBERT.replace(old, new))
    assert not (tmp_path / "ranker.work").exists()


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
