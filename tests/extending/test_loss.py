"""A loss of another package: one file, one entry point."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

import tiny
from invented import invent
from secondlook.errors import MalformedInput, SecondlookError
from secondlook.model.network import new_joint
from secondlook.train.groups import write_groups
from secondlook.train.losses import LOSSES, register
from secondlook.train.losses.listwise import Listwise
from secondlook.train.phase import Place, TrainData
from secondlook.train.phases import run_phase
from secondlook.train.recipe import read_recipe, resolved

RECIPE = """
base = "tiny"
[[phases]]
phase = "list_mle"
top = 1
batch = 10
max_steps = 40
learning_rate = 5e-3
dropout = 0.0
precision = "fp32"
validate_every = 20
"""


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def test_it_trains_a_ranker_by_its_name_in_a_recipe(install, recipe_file, tmp_path):
    install("acme-ranking")
    recipe = read_recipe(recipe_file)
    (phase,) = recipe.phases
    assert (phase.top, phase.negatives) == (1, 5)
    cost = phase.cost(torch.tensor([0.0, 2.0, 1.0]), torch.tensor([0, 1, 0])).item()
    assert cost == pytest.approx(log(1 + exp(2) + exp(1)) - 2)
    recipe_file.write_text(resolved(recipe))
    assert read_recipe(recipe_file) == recipe
    torch.manual_seed(0)
    start = new_joint(tiny.save(tiny.encoder(), tmp_path / "base"))
    groups = tmp_path / "groups.parquet"
    write_groups(groups, invent(20), about={})
    place = Place(tmp_path / "work", 1, "cpu")
    outcome = run_phase(phase, start, TrainData(tmp_path, (groups,), groups), place)
    assert outcome.metrics["nDCG@10"] > outcome.metrics["nDCG@10 at the start"] + 0.1


def test_without_the_package_its_name_is_unknown_and_with_it_a_near_name_is_helped(
    install, recipe_file
):
    with pytest.raises(MalformedInput, match="no phase 'list_mle'"):
        read_recipe(recipe_file)
    install("acme-ranking")
    recipe_file.write_text(RECIPE.replace("list_mle", "list_mel"))
    with pytest.raises(MalformedInput, match="did you mean 'list_mle'"):
        read_recipe(recipe_file)
    recipe_file.write_text(RECIPE.replace("top =", "topp ="))
    with pytest.raises(MalformedInput, match="did you mean 'top'"):
        read_recipe(recipe_file)


def test_a_program_adds_one_for_itself():
    @register
    class Halved(Listwise):
        phase: str = "halved"

        def cost(self, scores, grades, teacher=None):
            return super().cost(scores, grades) / 2

    assert LOSSES["halved"] is Halved
    with pytest.raises(SecondlookError, match="'listwise' is a loss of secondlook itself"):
        register(Listwise)


def test_a_package_that_cannot_be_loaded_is_named(install, recipe_file):
    (install("acme-ranking") / "acme_ranking.py").write_text("import no_such_module\n")
    with pytest.raises(SecondlookError, match="of the package acme-ranking cannot be loaded"):
        read_recipe(recipe_file)
