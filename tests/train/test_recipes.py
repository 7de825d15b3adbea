"""The recipes that come with the product."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondlook.train.recipe import read_recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_can_be_read(path):
    recipe = read_recipe(path)
    assert recipe.data.train or recipe.data.triples
    assert recipe.data.validation


def test_drbert_is_the_papers_list_of_phases():
    [path] = [path for path in RECIPES if path.stem == "drbert"]
    recipe = read_recipe(path)
    assert [one.phase for one in recipe.phases] == ["adapt", "pointwise", "denoise", "listwise"]
    assert recipe.encode == {
        "max_length": 180,
        "max_query_length": 64,
        "query_types": True,
        "strm": True,
    }
    adapt, pointwise, _, listwise = recipe.phases
    assert (adapt.epochs, adapt.learning_rate, adapt.warmup, adapt.batch) == (5, 1e-6, 0.1, 128)
    assert pointwise.epochs == 1
    assert (listwise.positives, listwise.negatives, listwise.epochs, listwise.batch) == (
        1,
        5,
        5,
        16,
    )
