"""The recipe that `tune` chooses keeps to the time it was given, validation included."""

from __future__ import annotations

from math import ceil

import pytest

import tiny
from invented import invent
from secondlook.train import choice
from secondlook.train.groups import write_groups
from secondlook.train.plan import PhasePlan, Plan
from secondlook.train.ranking import validate_every
from secondlook.train.recipe import DataSettings
from secondlook.train.run import job

QUERIES, VALIDATED = 400, 50


@pytest.fixture
def work(tmp_path):
    for name, count in {"train": QUERIES, "dev": VALIDATED}.items():
        write_groups(tmp_path / f"{name}.parquet", invent(count), about={})
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    data = DataSettings(train=("train.parquet",), validation="dev.parquet")
    return job(choice.whole_recipe(str(base), data, 64), tmp_path, tmp_path / "ranker")


def known_costs(step, query):
    """An estimate for a machine that takes so many seconds a step and a validation query."""

    def estimate(job):
        listwise = job.recipe.phases[-1]
        steps = ceil(listwise.epochs * QUERIES / listwise.batch)
        validations = 1 + steps / validate_every(listwise, steps)
        validating = validations * query * (listwise.validate_queries or VALIDATED)
        phase = PhasePlan(
            "listwise", steps=steps, seconds=steps * step, validation_seconds=validating
        )
        return Plan("base", "cpu", 1, "fp32", 1, (PhasePlan("warm"), phase))

    return estimate


@pytest.mark.parametrize(("step", "query"), [(1, 0.1), (1, 1), (0.1, 10), (0.01, 1), (10, 0.1)])
def test_no_more_than_fits_is_planned(work, monkeypatch, step, query):
    monkeypatch.setattr(choice, "estimate", known_costs(step, query))
    recipe, plan = choice.fitted(work, 100.0)
    assert plan.seconds <= 100 * 1.15 + step + 3 * query
    listwise = recipe.phases[-1]
    assert listwise.epochs > 0
    assert plan.phases[-1].seconds >= 60 or listwise.epochs == 3.0


def test_what_fits_is_left_whole(work, monkeypatch):
    monkeypatch.setattr(choice, "estimate", known_costs(0.001, 0.001))
    recipe, _ = choice.fitted(work, 100.0)
    assert recipe == work.recipe
