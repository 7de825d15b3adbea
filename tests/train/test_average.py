"""The mean of the weights, which a kill does not change."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from secondlook.progress import Unwatched
from secondlook.train import ranking
from secondlook.train.average import Average
from secondlook.train.groups import Groups
from secondlook.train.losses.listwise import Listwise
from secondlook.train.phase import Place, TrainData
from secondlook.train.ranker import ranker_of
from secondlook.train.states import whole
from secondlook.train.validation import Validation

SETTINGS = Listwise(
    batch=10,
    max_steps=12,
    learning_rate=5e-3,
    dropout=0.0,
    precision="fp32",
    validate_every=4,
    average=0.9,
)


def test_the_mean_by_hand():
    network = nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(0.0)
    average = Average(network, keep=0.6)
    for value in (1.0, 2.0, 3.0):
        network.weight.data.fill_(value)
        average.update()
    # plain means of 0, 1 -> 1/2, then (keep .6) 1/2 -> 1.1, then 1.86
    with average.in_place():
        assert network.weight.item() == pytest.approx(0.6 * (0.6 * 0.5 + 0.4 * 2) + 0.4 * 3)
    assert network.weight.item() == 3.0


def test_what_is_frozen_has_no_mean():
    network = nn.Linear(2, 1)
    network.bias.requires_grad_(requires_grad=False)
    average = Average(network, keep=0.5)
    network.bias.data.fill_(5.0)
    average.update()
    with average.in_place():
        assert network.bias.item() == 5.0


class Killed(Exception):
    pass


class Killer(Unwatched):
    def __init__(self, at):
        self._left = at

    def step(self, items, figures):
        if "loss" in figures:
            self._left -= 1
            if self._left == 0:
                raise Killed


@pytest.mark.slow  # trainings are killed in CI without a mean
def test_a_killed_run_goes_on_to_the_same_mean(warm, data, tmp_path):
    begun = {name: weight.clone() for name, weight in warm.network.state_dict().items()}

    def trained(folder, at):
        warm.network.load_state_dict(begun)
        torch.manual_seed(0)
        place = Place(tmp_path / folder, 1, "cpu", Killer(at))
        made = ranking.run(SETTINGS, warm, data, place).model.network.state_dict()
        return {name: weight.clone() for name, weight in made.items()}

    whole = trained("whole", 0)
    for at in (6, 3):
        with pytest.raises(Killed):
            trained("killed", at)
    again = trained("killed", 0)
    assert all(torch.equal(weight, again[name]) for name, weight in whole.items())
    assert any(not torch.equal(weight, begun[name]) for name, weight in whole.items())


def test_the_mean_is_another_ranker_than_the_last_weights(warm, data, tmp_path):
    begun = {name: weight.clone() for name, weight in warm.network.state_dict().items()}
    plain = TrainData(data.folder, data.train)  # with validation the better of the two is kept
    made = []
    for average in (0.0, 0.9):
        warm.network.load_state_dict(begun)
        settings = SETTINGS.model_copy(update={"average": average})
        outcome = ranking.run(settings, warm, plain, Place(tmp_path / str(average), 1, "cpu"))
        made.append({n: w.clone() for n, w in outcome.model.network.state_dict().items()})
    last, mean = made
    distance = [
        sum((made[name] - weight).norm() for name, weight in begun.items()) for made in (last, mean)
    ]
    assert 0 < distance[1] < distance[0]


def test_the_figure_is_that_of_the_mean_where_the_last_weights_are_kept(warm, data, tmp_path):
    settings = SETTINGS.model_copy(update={"keep": "last", "average": 0.95})
    outcome = ranking.run(settings, warm, data, Place(tmp_path / "work", 1, "cpu"))
    kept = ranker_of(outcome.model, None, torch.device("cpu"), "fp32")
    figure = Validation(Groups([data.validate]), "nDCG@10")(kept)
    assert outcome.metrics["nDCG@10"] == figure
    last = [point["nDCG@10"] for point in outcome.history if "nDCG@10" in point][-1]
    assert last != figure


def test_a_run_is_saved_on_the_way_to_its_only_validation(warm, data, tmp_path):
    settings = SETTINGS.model_copy(update={"max_steps": 20, "validate_every": 20})
    place = Place(tmp_path / "killed", 1, "cpu", Killer(9))
    with pytest.raises(Killed):
        ranking.run(settings, warm, data, place)
    assert [state.name for state in whole(place.run)] == ["checkpoint-6", "checkpoint-8"]
