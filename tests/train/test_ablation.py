from math import ceil

import pytest

from secondlook.errors import SecondlookError
from secondlook.train.ablation import Work, variants
from secondlook.train.recipe import Recipe
from secondlook.train.settings import RankingPhase

DRBERT = {
    "base": "some/where",
    "encode": {"strm": True, "query_types": True, "max_length": 60},
    "data": {"train": ["train.parquet"]},
    "phases": [
        {"phase": "adapt", "corpus": "c.jsonl"},
        {"phase": "pointwise", "max_steps": 100},
        {"phase": "denoise", "threshold": 0.0},
        {"phase": "listwise", "max_steps": 300, "negatives": 5},
    ],
}


def nominal(phase):
    """As if every query had documents enough; 160 queries where a phase counts epochs."""
    steps = phase.max_steps or ceil(phase.epochs * 160 / phase.batch)
    return Work(steps, phase.positives + phase.negatives)


def variants_of(*negatives, **changes):
    return variants(Recipe.model_validate(DRBERT | changes), nominal, negatives)


def made(**changes):
    return {name: variant.recipe for name, variant in variants_of(**changes).items()}


def phases(recipe):
    return [phase.phase for phase in recipe.phases]


def test_every_part_is_taken_out_and_put_in_once():
    assert {name: phases(recipe) for name, recipe in made().items()} == {
        "whole": ["adapt", "pointwise", "denoise", "listwise"],
        "whole − STRM": ["adapt", "pointwise", "listwise"],  # the whole reduces noise for all
        "whole − types": ["adapt", "pointwise", "listwise"],
        "whole − adapt": ["pointwise", "listwise"],
        "whole − pointwise": ["adapt", "listwise"],
        "whole − denoise": ["adapt", "pointwise", "listwise"],
        "whole − listwise": ["adapt", "pointwise"],  # nobody would learn from what is cleaned
        "plain": ["pointwise"],
        "listwise only": ["listwise"],
        "plain + STRM": ["pointwise"],
        "plain + types": ["pointwise"],
        "plain + adapt": ["adapt", "pointwise"],
        "plain + denoise": ["pointwise"],
        "plain + listwise": ["pointwise", "listwise"],
    }


def test_switches_are_the_encoders_and_nothing_else_of_it_changes():
    all_of = made()
    assert all_of["whole − STRM"].encode == {"query_types": True, "max_length": 60}
    assert all_of["plain"].encode == {"max_length": 60}
    assert all_of["plain + types"].encode == {"query_types": True, "max_length": 60}


def test_every_recipe_scores_as_many_pairs_in_as_many_steps():
    pairs = 100 * 16 * 2 + 300 * 16 * 6
    per_step = 16 * 6  # of the last phase
    for name, variant in variants_of(1, 11).items():
        assert variant.pairs == pytest.approx(pairs, abs=per_step), name
        assert variant.steps == pytest.approx(pairs / per_step, abs=2), name
        trained = [phase for phase in variant.recipe.phases if isinstance(phase, RankingPhase)]
        assert sum(phase.max_steps for phase in trained) == variant.steps
        for phase in trained:
            assert phase.batch * (phase.positives + phase.negatives) == per_step


def test_epochs_and_steps_are_counted_alike():
    both = [{"phase": "pointwise", "epochs": 1}, {"phase": "listwise", "max_steps": 50}]
    whole, plain = (variants_of(phases=both)[name] for name in ("whole", "plain"))
    assert whole.pairs == pytest.approx(10 * 16 * 2 + 50 * 16 * 6, abs=96)
    assert plain.pairs == pytest.approx(whole.pairs, abs=96)


def test_all_that_reduce_noise_learn_from_what_the_whole_left():
    files = {name: variant.cleaned for name, variant in variants_of().items()}
    cleaned = ("denoised-3.parquet",)
    assert {name for name, own in files.items() if own == cleaned} == {
        "whole − STRM",
        "whole − types",
        "whole − adapt",
        "whole − pointwise",
        "plain + denoise",
    }
    assert set(files.values()) == {cleaned, ()}
    pointwise, listwise = made()["whole − adapt"].phases
    assert (pointwise.only, listwise.only) == (("train.parquet",), cleaned)
    assert [phase.only for phase in made()["whole − pointwise"].phases[1:]] == [cleaned]
    assert [phase.only for phase in made()["whole − denoise"].phases[1:]] == [(), ()]


def test_a_warm_start_stays_and_may_reduce_noise_at_once():
    listed = [{"phase": "warm"}, {"phase": "denoise", "threshold": 1.0}, {"phase": "listwise"}]
    all_of = made(phases=listed, encode={})
    assert {name: phases(recipe) for name, recipe in all_of.items()} == {
        "whole": ["warm", "denoise", "listwise"],
        "whole − denoise": ["warm", "listwise"],
    }


def test_a_sweep_changes_the_negatives_of_the_last_ranking_phase():
    swept = variants_of(1, 5)
    assert swept["1 negatives"].recipe.phases[-1].negatives == 1
    assert "5 negatives" not in swept  # that is the whole


def test_phases_that_come_twice_are_told_by_their_number():
    twice = [{"phase": "pointwise", "epochs": 1}, {"phase": "pointwise", "epochs": 2}]
    assert "whole − pointwise 1" in made(phases=twice, encode={})


def test_a_recipe_that_ranks_nothing_is_refused():
    with pytest.raises(SecondlookError, match="no ranking phase"):
        made(phases=[{"phase": "adapt", "corpus": "c.jsonl"}])


def test_a_sweep_over_training_pairs_keeps_the_proportion_of_phases():
    recipe = Recipe.model_validate(DRBERT)
    made = variants(recipe, nominal, pairs=[3_200, 16_000, 32_000], parts=False)
    assert list(made) == ["whole", "3,200 pairs", "16,000 pairs"]  # 32,000 are the whole's
    assert made["3,200 pairs"].pairs == pytest.approx(3_200, abs=96)
    for variant in made.values():
        pointwise, listwise = (
            phase.max_steps for phase in variant.recipe.phases if isinstance(phase, RankingPhase)
        )
        assert listwise / pointwise == pytest.approx(9, rel=0.15)


def test_the_plain_recipe_learns_from_triples_as_they_are_where_others_clean_them():
    data = {"triples": {"file": "triples.tsv"}}
    made = variants(Recipe.model_validate(DRBERT | {"data": data}), nominal)
    first = made["whole − STRM"].recipe.phases[1]
    assert first.phase == "pointwise"
    [name] = first.only
    assert name.startswith("triples.tsv.")
