import pytest

from secondlook.errors import SecondlookError
from secondlook.train.ablation import variants
from secondlook.train.recipe import Recipe

DRBERT = {
    "base": "some/where",
    "encode": {"strm": True, "query_types": True, "max_length": 60},
    "phases": [
        {"phase": "adapt", "corpus": "c.jsonl"},
        {"phase": "pointwise", "max_steps": 100},
        {"phase": "denoise", "threshold": 0.0},
        {"phase": "listwise", "max_steps": 300, "negatives": 5},
    ],
}


def made(**changes):
    return variants(Recipe.model_validate(DRBERT | changes))


def phases(recipe):
    return [phase.phase for phase in recipe.phases]


def test_every_part_is_taken_out_and_put_in_once():
    assert {name: phases(recipe) for name, recipe in made().items()} == {
        "whole": ["adapt", "pointwise", "denoise", "listwise"],
        "whole − STRM": ["adapt", "pointwise", "denoise", "listwise"],
        "whole − types": ["adapt", "pointwise", "denoise", "listwise"],
        "whole − adapt": ["pointwise", "denoise", "listwise"],
        "whole − pointwise": ["adapt", "listwise"],  # nobody has learned to tell noise
        "whole − denoise": ["adapt", "pointwise", "listwise"],
        "whole − listwise": ["adapt", "pointwise"],  # nobody would learn from what is cleaned
        "plain": ["pointwise"],
        "listwise only": ["listwise"],
        "plain + STRM": ["pointwise"],
        "plain + types": ["pointwise"],
        "plain + adapt": ["adapt", "pointwise"],
        "plain + listwise": ["pointwise", "listwise"],
    }


def test_switches_are_the_encoders_and_nothing_else_of_it_changes():
    all_of = made()
    assert all_of["whole − STRM"].encode == {"query_types": True, "max_length": 60}
    assert all_of["plain"].encode == {"max_length": 60}
    assert all_of["plain + types"].encode == {"query_types": True, "max_length": 60}


def test_every_recipe_makes_as_many_steps_as_the_whole():
    for recipe in made().values():
        assert sum(getattr(phase, "max_steps", None) or 0 for phase in recipe.phases) == 400


def test_epochs_are_shared_likewise_and_a_mixture_is_refused():
    both = [{"phase": "pointwise", "epochs": 1}, {"phase": "listwise", "epochs": 5}]
    assert made(phases=both)["plain"].phases[0].epochs == 6
    mixed = [{"phase": "pointwise", "epochs": 1}, {"phase": "listwise", "max_steps": 5}]
    with pytest.raises(SecondlookError, match="write max_steps in all"):
        made(phases=mixed)


def test_a_warm_start_stays_and_may_reduce_noise_at_once():
    listed = [{"phase": "warm"}, {"phase": "denoise", "threshold": 1.0}, {"phase": "listwise"}]
    all_of = made(phases=listed, encode={})
    assert {name: phases(recipe) for name, recipe in all_of.items()} == {
        "whole": ["warm", "denoise", "listwise"],
        "whole − denoise": ["warm", "listwise"],
    }


def test_a_sweep_changes_the_negatives_of_the_last_ranking_phase():
    swept = variants(Recipe.model_validate(DRBERT), [1, 5])
    assert swept["1 negatives"].phases[-1].negatives == 1
    assert "5 negatives" not in swept  # that is the whole


def test_phases_that_come_twice_are_told_by_their_number():
    twice = [{"phase": "pointwise", "epochs": 1}, {"phase": "pointwise", "epochs": 2}]
    assert "whole − pointwise 1" in made(phases=twice, encode={})


def test_a_recipe_that_ranks_nothing_is_refused():
    with pytest.raises(SecondlookError, match="no ranking phase"):
        made(phases=[{"phase": "adapt", "corpus": "c.jsonl"}])
