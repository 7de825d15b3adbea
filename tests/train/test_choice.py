"""The recipe is cut to the time there is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from invented import invent
from secondlook.encode.type_classifier import TypeClassifier
from secondlook.model.checkpoint import TYPES
from secondlook.model.network import new_joint, new_warm, save_model
from secondlook.train import choice, estimate
from secondlook.train.estimate import PhasePlan, Plan, validations
from secondlook.train.groups import Groups, write_groups
from secondlook.train.losses.listwise import Listwise
from secondlook.train.recipe import DataSettings, Recipe
from secondlook.train.run import job
from secondlook.train.validation import Validation


@pytest.fixture
def work(tmp_path, base):
    for name, count in (("train.parquet", 20), ("dev.parquet", 100)):
        write_groups(tmp_path / name, invent(count), about={})
    data = DataSettings(train=("train.parquet",), validation="dev.parquet")
    recipe = choice.whole_recipe(str(base), data)
    return job(recipe, tmp_path, tmp_path / "ranker", base=str(base), device="cpu")


def measured(job, *, step, query, steps=1000):
    listwise = job.recipe.phases[-1]
    validation = validations(listwise, steps) * 100 * query
    phase = PhasePlan("listwise", 20, steps, 6 * steps, 600 * steps, step * steps, validation, 1)
    return Plan("base", "cpu", 2, "bf16", 1, (PhasePlan("warm"), phase))


@pytest.mark.parametrize(
    ("step", "query"), [(1.0, 0.01), (0.5, 1.0), (0.1, 0.6), (1.0, 2.0), (1.0, 0.0)]
)
def test_what_is_chosen_fits_into_the_time(work, monkeypatch, step, query):
    monkeypatch.setattr(choice, "estimate", lambda job: measured(job, step=step, query=query))
    recipe, plan = choice.fitted(work, 600)
    listwise, planned = recipe.phases[-1], plan.phases[-1]
    assert plan.seconds <= 600
    assert listwise.max_steps == planned.steps
    assert listwise.validate_queries >= 50
    assert planned.steps == 1000 or plan.seconds > 0.9 * 600 or listwise.validate_queries < 100
    assert planned.validation_seconds <= max(150, 2 * 50 * query)
    assert planned.pairs == 6 * planned.steps


def test_what_fits_is_not_cut(work, monkeypatch):
    monkeypatch.setattr(choice, "estimate", lambda job: measured(job, step=0.01, query=0.001))
    recipe, _ = choice.fitted(work, 600)
    assert recipe == work.recipe


def test_a_training_too_short_to_be_of_use_is_refused_with_what_it_would_take(work, monkeypatch):
    """A step takes 30 s: in a minute one would be made, and the 20 queries are three steps."""
    monkeypatch.setattr(choice, "estimate", lambda job: measured(job, step=30.0, query=0.1))
    with pytest.raises(choice.TooLittleTime) as short:
        choice.fitted(work, 60)
    assert short.value.seconds == pytest.approx(3 * 30 + 2 * 50 * 0.1)
    recipe, _ = choice.fitted(work, short.value.seconds + 5)
    assert recipe.phases[-1].max_steps >= 3


@pytest.mark.parametrize("seconds", [0.001, 10.0])
def test_validation_is_estimated_by_its_pairs_however_slow_one_is(work, base, monkeypatch, seconds):
    """Where a single query takes long, it alone is tried: its pairs count there, too."""
    now = [0.0]
    monkeypatch.setattr(estimate, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(
        Validation, "__call__", lambda self, _: now.append(now.pop() + seconds * len(self))
    )
    listwise, groups = work.recipe.phases[-1], Groups([work.data.validate])
    cpu = torch.device("cpu")
    found = estimate._validation_seconds(work, listwise, new_warm(str(base)), cpu, 30)
    pairs = len(Validation(groups, "nDCG@10"))
    assert found == pytest.approx(seconds * pairs * validations(listwise, 30))


def test_a_ranker_with_query_types_is_estimated_with_its_classifier(tmp_path, base):
    start = new_joint(base, {"query_types": True})
    trained = start.settings.model_copy(update={"trained": True})
    save_model(replace(start, settings=trained), tmp_path / "typed")
    labelled = [("who", "person"), ("where", "location")]
    TypeClassifier.train(labelled).save(tmp_path / "typed" / TYPES)
    write_groups(tmp_path / "groups.parquet", invent(8), about={})
    recipe = Recipe(
        base=str(tmp_path / "typed"),
        data=DataSettings(train=("groups.parquet",), validation="groups.parquet"),
        phases=(Listwise(max_steps=1, batch=4, precision="fp32"),),
    )
    plan = estimate.estimate(job(recipe, tmp_path, tmp_path / "ranker", device="cpu"))
    assert plan.phases[0].tokens > 0
    assert plan.phases[0].validation_seconds > 0


def test_validation_takes_no_time_where_no_candidate_is_relevant(work, base):
    unfound = [replace(group, labels=(-1,) * 6, missed=(1,)) for group in invent(4, candidates=6)]
    write_groups(work.data.validate, unfound, about={})
    model, cpu = new_warm(str(base)), torch.device("cpu")
    assert estimate._validation_seconds(work, work.recipe.phases[-1], model, cpu, 30) == 0.0
