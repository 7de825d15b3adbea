from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import tiny
from invented import invent
from secondlook.errors import SecondlookError, UnknownName
from secondlook.model.network import load_model, new_warm, save_model
from secondlook.progress import Unwatched
from secondlook.train import ranking, trainer
from secondlook.train.groups import Group, write_groups
from secondlook.train.losses.distil import KLDivergence, MarginMSE
from secondlook.train.losses.listwise import Listwise
from secondlook.train.losses.pairwise import Hinge, RankNet
from secondlook.train.losses.pointwise import Pointwise
from secondlook.train.phase import Place, TrainData
from secondlook.types import Document, Query

FAST = {
    "batch": 10,
    "max_steps": 80,
    "learning_rate": 5e-3,
    "dropout": 0.0,
    "precision": "fp32",
    "validate_every": 20,
    "patience": 2,
}
STILL = {"learning_rate": 1e-12, "scalar_learning_rate": 1e-12, "head_learning_rate": 1e-12}


@pytest.fixture(autouse=True)
def random_heads():
    torch.manual_seed(0)


LOSSES = {
    "pointwise": Pointwise(**FAST, negatives=5),
    "listwise": Listwise(**FAST),
    "graded": Listwise(**FAST, graded=True),
    "hinge": Hinge(**FAST, negatives=5),
    "ranknet": RankNet(**FAST, negatives=5),
    "kl": KLDivergence(**FAST),
    "margin_mse": MarginMSE(**FAST),
}
FORMS = ("joint", "warm")


def every_loss_and_form():
    """Each loss in one form, the forms in turn; the other half only takes time."""
    for place, (name, settings) in enumerate(LOSSES.items()):
        for form in FORMS:
            marks = [] if form == FORMS[place % 2] else [pytest.mark.slow]
            yield pytest.param(settings, form, id=f"{name}-{form}", marks=marks)


@pytest.mark.parametrize(("settings", "form"), list(every_loss_and_form()))
def test_twenty_groups_are_learnt_perfectly(settings, form, request, data, tmp_path):
    start = request.getfixturevalue(form)
    outcome = ranking.run(settings, start, data, Place(tmp_path / "work", seed=1, device="cpu"))
    assert outcome.metrics["nDCG@10"] == 1.0
    assert outcome.metrics["nDCG@10 at the start"] < 0.9
    assert outcome.model.settings.trained


class Listener(Unwatched):
    def __init__(self):
        self.said = []
        self.losses = []

    def say(self, message):
        self.said.append(message)

    def step(self, items, figures):
        if "loss" in figures:
            self.losses.append(figures["loss"])


def state(model):
    return {name: weight.clone() for name, weight in model.network.state_dict().items()}


def test_a_training_that_makes_it_worse_is_said_loudly_and_the_start_is_kept(warm, data, tmp_path):
    good = ranking.run(Listwise(**FAST), warm, data, Place(tmp_path / "a", 1, "cpu")).model
    before = state(good)
    listener = Listener()
    ruin = Listwise(**FAST | {"learning_rate": 0.5, "max_steps": 5, "validate_every": 1})
    outcome = ranking.run(ruin, good, data, Place(tmp_path / "b", 1, "cpu", listener))
    assert any("THAN THE START" in said for said in listener.said)
    assert outcome.metrics["nDCG@10"] == 1.0
    assert outcome.metrics["nDCG@10 of the rejected training"] <= 1.0
    after = state(outcome.model)
    assert all(torch.equal(after[name], weight) for name, weight in before.items())


def test_the_best_weights_are_kept_not_the_last(warm, data, tmp_path):
    listener = Listener()
    settings = Listwise(**FAST | {"max_steps": 60, "validate_every": 10, "patience": None})
    outcome = ranking.run(settings, warm, data, Place(tmp_path / "a", 1, "cpu", listener))
    measured = [point["nDCG@10"] for point in outcome.history if "nDCG@10" in point]
    assert len(measured) == 7
    assert outcome.metrics["nDCG@10"] == max(measured)
    again = ranking.run(
        Listwise(**FAST | {"max_steps": 1, "learning_rate": 1e-12}),
        outcome.model,
        data,
        Place(tmp_path / "b", 1, "cpu"),
    )
    assert again.metrics["nDCG@10 at the start"] == max(measured)


def test_the_last_weights_are_kept_where_asked_though_validation_says_otherwise(
    warm, data, tmp_path
):
    good = ranking.run(Listwise(**FAST), warm, data, Place(tmp_path / "a", 1, "cpu")).model
    before = state(good)
    ruin = FAST | {"learning_rate": 0.5, "max_steps": 5, "validate_every": 1, "patience": None}
    listener = Listener()
    place = Place(tmp_path / "b", 1, "cpu", listener)
    outcome = ranking.run(Listwise(**ruin, keep="last"), good, data, place)
    measured = [point["nDCG@10"] for point in outcome.history if "nDCG@10" in point]
    assert outcome.metrics["nDCG@10"] == measured[-1] < 1.0
    assert not any("THAN THE START" in said for said in listener.said)
    after = state(outcome.model)
    assert any(not torch.equal(after[name], weight) for name, weight in before.items())


def test_a_measure_may_be_spelled_in_any_way_ir_measures_reads(warm, data, tmp_path):
    settings = Listwise(**FAST | {"max_steps": 1, "measure": "nDCG(dcg='log2')@10"})
    outcome = ranking.run(settings, warm, data, Place(tmp_path / "a", 1, "cpu"))
    assert 0 < outcome.metrics["nDCG@10"] <= 1


def test_patience_stops_a_training_that_gets_no_better(warm, data, tmp_path):
    settings = Listwise(**FAST | STILL | {"validate_every": 5})
    outcome = ranking.run(settings, warm, data, Place(tmp_path / "a", 1, "cpu"))
    assert outcome.metrics["steps"] == 15


def test_too_little_memory_cuts_the_step_and_gives_the_same_weights(
    warm, data, tmp_path, monkeypatch
):
    """Where memory runs out above 300 tokens, the same batch is done in parts."""
    settings = Pointwise(**FAST | {"max_steps": 4, "validate_every": None}, negatives=5)
    plain = TrainData(data.folder, data.train)
    before = state(warm)
    place = Place(tmp_path / "a", 1, "cpu")
    whole = state(ranking.run(settings, warm, plain, place).model)
    warm.network.load_state_dict(before)
    score = trainer.score

    def short_of_memory(network, inputs, groups, **given):
        if sum(group.tokens for group in groups) > 300:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 TiB")
        return score(network, inputs, groups, **given)

    monkeypatch.setattr(trainer, "score", short_of_memory)
    listener = Listener()
    place = Place(tmp_path / "b", 1, "cpu", listener)
    cut = state(ranking.run(settings, warm, plain, place).model)
    assert any("memory is short" in said for said in listener.said)
    for name, weight in whole.items():
        if not name.endswith("key.bias"):  # its gradient is 0, and Adam makes steps of its noise
            torch.testing.assert_close(cut[name], weight, atol=1e-4, rtol=1e-3, msg=name)


def test_a_group_that_does_not_fit_alone_is_said(warm, data, tmp_path, monkeypatch):
    def no_memory(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 TiB")

    monkeypatch.setattr(trainer, "score", no_memory)
    with pytest.raises(SecondlookError, match="lower negatives or max_length"):
        ranking.run(
            Listwise(**FAST),
            warm,
            TrainData(data.folder, data.train),
            Place(tmp_path / "a", 1, "cpu"),
        )


def mixed(folder):
    """One query with long documents and three with short ones, which share a part of the step."""
    lengths = [60, 3, 3, 3]
    groups = [
        Group(
            Query(f"q{number}", "what fish"),
            tuple(Document(f"{number}-{at}", "fish " * length) for at in range(4)),
            (1, 0, 0, 0),
            (1, 2, 3, 4),
        )
        for number, length in enumerate(lengths)
    ]
    write_groups(folder / "mixed.parquet", groups, about={})
    return TrainData(folder, (folder / "mixed.parquet",))


class Hasty(Unwatched):
    """Does not wait for ever while a step is cut."""

    def say(self, message):
        self.messages = getattr(self, "messages", 0) + 1
        assert self.messages < 10, message


def test_a_group_too_large_for_memory_is_said_though_others_share_a_part(
    warm, tmp_path, monkeypatch
):
    score = trainer.score

    def short_of_memory(network, inputs, groups, **given):
        if any(group.tokens > 200 for group in groups):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 TiB")
        return score(network, inputs, groups, **given)

    monkeypatch.setattr(trainer, "score", short_of_memory)
    place = Place(tmp_path / "a", 1, "cpu", Hasty())
    settings = Listwise(**FAST | {"max_steps": 1, "batch": 4, "patience": None})
    with pytest.raises(SecondlookError, match="lower negatives or max_length"):
        ranking.run(settings, warm, mixed(tmp_path), place)


def test_a_step_is_cut_further_though_its_largest_group_fits_alone(warm, tmp_path, monkeypatch):
    score = trainer.score

    def short_of_memory(network, inputs, groups, **given):
        if len(groups) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 TiB")
        return score(network, inputs, groups, **given)

    monkeypatch.setattr(trainer, "score", short_of_memory)
    place = Place(tmp_path / "a", 1, "cpu", Hasty())
    settings = Listwise(**FAST | {"max_steps": 1, "batch": 4, "patience": None})
    assert ranking.run(settings, warm, mixed(tmp_path), place).metrics["steps"] == 1


def test_frozen_embeddings_and_separate_layers_do_not_move(base, data, tmp_path):
    model = new_warm(base, separate_layers=2)
    before = state(model)
    settings = Listwise(**FAST | {"max_steps": 5, "freeze_embeddings": True})
    after = state(
        ranking.run(
            settings, model, TrainData(data.folder, data.train), Place(tmp_path / "a", 1, "cpu")
        ).model
    )
    moved = {name for name, weight in before.items() if not torch.equal(after[name], weight)}
    assert "encoder.embeddings.word_embeddings.weight" not in moved
    assert "gate" not in moved
    assert {"alpha", "encoder.encoder.layer.0.attention.self.query.weight"} <= moved
    assert model.network.encoder.get_input_embeddings().weight.requires_grad  # as before


def test_scalars_of_the_warm_form_have_their_own_learning_rate(warm, data, tmp_path):
    before = state(warm)
    settings = Listwise(
        **FAST | {"max_steps": 1, "learning_rate": 1e-9, "warmup": 0.0, "weight_decay": 0.0}
    )
    plain = TrainData(data.folder, data.train)
    after = state(ranking.run(settings, warm, plain, Place(tmp_path / "a", 1, "cpu")).model)
    assert (after["alpha"] - before["alpha"]).abs().item() == pytest.approx(0.02, rel=1e-2)
    weight = "encoder.encoder.layer.0.attention.self.query.weight"
    assert (after[weight] - before[weight]).abs().max() < 1e-6


def test_two_recipes_that_differ_in_one_switch_see_the_same_data(warm, base, data, tmp_path):
    """With a rate of nearly nothing the losses of every step show what was drawn, in its order."""
    still = FAST | STILL | {"max_steps": 6}
    plain = TrainData(data.folder, data.train)
    seen = []
    for switch in ({}, {"weight_decay": 0.0}, {"freeze_embeddings": True}, {"schedule": "cosine"}):
        listener = Listener()
        place = Place(tmp_path / f"run{len(seen)}", 1, "cpu", listener)
        ranking.run(Listwise(**still | switch), new_warm(base), plain, place)
        seen.append(listener.losses)
    assert len(seen[0]) == 6
    assert len(set(seen[0])) == 6
    assert all(losses == pytest.approx(seen[0], abs=1e-6) for losses in seen[1:])
    listener = Listener()
    place = Place(tmp_path / "another-seed", 2, "cpu", listener)
    ranking.run(Listwise(**still), new_warm(base), plain, place)
    assert listener.losses != pytest.approx(seen[0], abs=1e-6)


def test_a_loss_that_is_no_number_stops_the_training(warm, data, tmp_path, monkeypatch):
    monkeypatch.setattr(
        Listwise, "cost", lambda self, scores, grades, teacher: scores.sum() * float("nan")
    )
    with pytest.raises(SecondlookError, match="lower learning_rate"):
        ranking.run(Listwise(**FAST), warm, data, Place(tmp_path / "a", 1, "cpu"))


def test_without_training_data_it_says_where_to_name_them(warm, tmp_path):
    with pytest.raises(SecondlookError, match="name group files"):
        ranking.run(Listwise(), warm, TrainData(tmp_path), Place(tmp_path / "a", 1, "cpu"))


def test_a_phase_learns_only_from_the_files_it_names(warm, data, tmp_path):
    other = tmp_path / "other.parquet"
    write_groups(other, invent(3), about={})
    both = replace(data, train=(*data.train, other))
    settings = Listwise(**FAST | {"max_steps": 1, "only": ["other.parquet"]})
    outcome = ranking.run(settings, warm, both, Place(tmp_path / "a", 1, "cpu"))
    assert set(outcome.learned_from) == {"other.parquet"}
    assert outcome.metrics["queries"] == 3
    assert outcome.data.train == both.train


def test_a_file_that_is_not_there_is_said_with_the_nearest(warm, data, tmp_path):
    settings = Listwise(only=("grups.parquet",))
    with pytest.raises(UnknownName, match=r"did you mean 'groups\.parquet'"):
        ranking.run(settings, warm, data, Place(tmp_path / "a", 1, "cpu"))


def test_pointwise_training_of_a_warm_ranker_begins_at_log_odds(warm, data, tmp_path):
    """Cosines make scores of tens, which cross-entropy would first of all push down."""
    listener = Listener()
    settings = Pointwise(**FAST | {"max_steps": 1, "learning_rate": 1e-12}, negatives=5)
    plain = TrainData(data.folder, data.train)  # with validation a start that is as good is kept
    ranking.run(settings, warm, plain, Place(tmp_path / "a", 1, "cpu", listener))
    assert warm.network.head.bias.item() < 0 < warm.network.alpha.item() < 40
    knowing_nothing = -(np.log(1 / 6) + 5 * np.log(5 / 6)) / 6
    assert listener.losses[0] < knowing_nothing + 0.05


def test_a_rejected_pointwise_training_leaves_all_weights_as_they_were(warm, data, tmp_path):
    good = ranking.run(Listwise(**FAST), warm, data, Place(tmp_path / "a", 1, "cpu")).model
    before = state(good)
    ruin = Pointwise(**FAST | {"learning_rate": 0.5, "max_steps": 2}, negatives=5)
    after = state(ranking.run(ruin, good, data, Place(tmp_path / "b", 1, "cpu")).model)
    assert all(torch.equal(after[name], weight) for name, weight in before.items())


@pytest.mark.parametrize("family", tiny.ENCODER_DECODERS)
def test_an_encoder_decoder_is_trained_saved_and_loaded(family, data, tmp_path):
    """Its word embeddings have three names, and a file of safetensors takes one."""
    start = load_model(tiny.save(tiny.encoder_decoder(family), tmp_path / family))
    settings = Listwise(**FAST | {"max_steps": 4, "validate_every": 2, "keep": "last"})
    outcome = ranking.run(settings, start, data, Place(tmp_path / "work", 1, "cpu"))
    assert outcome.metrics["steps"] == 4
    save_model(outcome.model, tmp_path / "ranker")
    loaded, trained = state(load_model(tmp_path / "ranker")), state(outcome.model)
    assert all(torch.equal(loaded[name], weight) for name, weight in trained.items())
