from __future__ import annotations

import sys
from importlib import import_module

import pytest

from secondlook.encode.settings import EncodeSettings
from secondlook.errors import MalformedInput, MissingExtra
from secondlook.train.losses.listwise import Listwise
from secondlook.train.recipe import Recipe, read_recipe, resolved
from secondlook.train.settings import WarmPhase

RECIPE = """
base = "intfloat/e5-small"
seed = 3

[encode]
max_length = 180
strm = true

[data]
train = ["train.parquet"]
validation = "dev.parquet"

[[phases]]
phase = "warm"

[[phases]]
phase = "listwise"
negatives = 7
"""


@pytest.fixture
def recipe_file(tmp_path):
    def write(text):
        path = tmp_path / "my.toml"
        path.write_text(text)
        return path

    return write


def test_a_recipe_is_read_with_its_defaults(recipe_file):
    recipe = read_recipe(recipe_file(RECIPE))
    assert recipe.seed == 3
    assert recipe.data.train == ("train.parquet",)
    assert recipe.phases == (WarmPhase(), Listwise(negatives=7))
    assert recipe.phases[1].positives == 1


def test_the_resolved_copy_says_every_default_and_reads_back_the_same(recipe_file):
    recipe = read_recipe(recipe_file(RECIPE))
    text = resolved(recipe)
    assert "learning_rate = 3e-06" in text
    assert "scalar_learning_rate = 0.02" in text
    assert read_recipe(recipe_file(text)) == recipe


@pytest.mark.parametrize("name", ["max_query_length", "title_separator", "markers", "chat"])
def test_a_setting_that_is_none_is_false_in_toml(recipe_file, name):
    recipe = Recipe.model_validate(
        {"base": "b", "encode": {name: None}, "phases": [{"phase": "listwise"}]}
    )
    text = resolved(recipe)
    assert f"{name} = false" in text
    assert read_recipe(recipe_file(text)) == recipe


def test_the_recipe_of_a_finished_ranker_tells_none_only_where_it_is_not_the_default(recipe_file):
    recipe = read_recipe(recipe_file(RECIPE))
    encode = EncodeSettings(max_length=180, strm=True, max_query_length=None)
    text = resolved(recipe, encode)
    assert "max_query_length = false" in text
    assert "segments = true" in text
    assert not any(name in text for name in ("markers", "windows", "chat"))
    read = read_recipe(recipe_file(text)).encode
    assert EncodeSettings.model_validate(read) == encode


@pytest.mark.parametrize("name", ["max_length", "query_prompt"])
def test_what_cannot_be_none_cannot_be_false(recipe_file, name):
    wrong = RECIPE.replace("max_length = 180", f"{name} = false")
    with pytest.raises(MalformedInput, match=name):
        read_recipe(recipe_file(wrong))


def test_a_misspelt_setting_is_refused_with_the_nearest(recipe_file):
    wrong = RECIPE.replace("negatives = 7", "negative = 7")
    with pytest.raises(MalformedInput, match=r"my\.toml: .*did you mean 'negatives'"):
        read_recipe(recipe_file(wrong))
    with pytest.raises(MalformedInput, match="did you mean 'max_length'"):
        read_recipe(recipe_file(RECIPE.replace("max_length", "max_lenght")))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("negatives = 7", "negatives = 0"), "negatives"),
        (('phase = "listwise"', 'phase = "lisswise"'), "phase"),
        (("seed = 3", "seed = "), "Invalid value"),
        (("base =", "seeds = 1\nbase ="), "did you mean 'seed'"),
    ],
)
def test_a_wrong_recipe_says_where(recipe_file, change, said):
    with pytest.raises(MalformedInput, match=said):
        read_recipe(recipe_file(RECIPE.replace(*change)))


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ('phase = "lisswise"', "no phase 'lisswise'; did you mean 'listwise'"),
        (
            'phase = "pairwise"\nloss = "hing"',
            "of the phase 'pairwise' 'hing'; did you",
        ),
        ('phase = "distil"\nloss = "hinge"', "known: kl, margin_mse"),
        ('phase = "frozen"\nloss = "rank_net"', "did you mean 'ranknet'"),
    ],
)
def test_an_unknown_phase_or_loss_is_refused_with_the_nearest(recipe_file, phase, said):
    with pytest.raises(MalformedInput, match=said):
        read_recipe(recipe_file(f'base = "b"\n[[phases]]\n{phase}\n'))


def test_a_phase_without_a_name_says_how_to_name_it(recipe_file):
    with pytest.raises(MalformedInput, match="name the phase"):
        read_recipe(recipe_file('base = "b"\n[[phases]]\nnegatives = 3\n'))


def test_only_the_first_phase_can_make_the_ranker():
    with pytest.raises(ValueError, match="first phase"):
        Recipe(base="b", phases=(Listwise(), WarmPhase()))


def test_a_recipe_that_is_not_there_is_said_in_one_line(tmp_path):
    with pytest.raises(MalformedInput, match="cannot be read"):
        read_recipe(tmp_path / "none.toml")


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    monkeypatch.delitem(sys.modules, "secondlook.train.run", raising=False)
    with pytest.raises(MissingExtra, match=r"secondlook\[train\]"):
        import_module("secondlook.train.run")
