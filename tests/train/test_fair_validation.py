"""Validations can be compared: one code, one precision, one attention; and their noise is told."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import pytest
import torch

from invented import invent
from secondlook.model.network import load_model, save_model
from secondlook.progress import Unwatched
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import device_of
from secondlook.train import ranking
from secondlook.train.gain import Gain
from secondlook.train.groups import Groups, write_groups
from secondlook.train.losses.listwise import Listwise
from secondlook.train.losses.pointwise import Pointwise
from secondlook.train.phase import Place, TrainData
from secondlook.train.ranker import ranker_of
from secondlook.train.validation import Validated, Validation

SHORT = {"batch": 10, "max_steps": 12, "learning_rate": 5e-3, "dropout": 0.0, "validate_every": 4}
MEASURE = "nDCG@10"


class Listener(Unwatched):
    def __init__(self):
        self.said = []

    def say(self, message):
        self.said.append(message)


@pytest.fixture
def many(tmp_path):
    """Enough pairs that rounding them differently shows in the measure."""
    train, dev = tmp_path / "train.parquet", tmp_path / "dev.parquet"
    groups = invent(120, candidates=12)
    write_groups(train, groups[:20], about={})
    write_groups(dev, groups, about={})
    return TrainData(tmp_path, (train,), dev)


@pytest.mark.parametrize(
    ("form", "precision"),
    [
        ("joint", "bf16"),
        ("warm", "fp32"),
        pytest.param("joint", "fp32", marks=pytest.mark.slow),
        pytest.param("warm", "bf16", marks=pytest.mark.slow),
    ],
)
def test_a_phase_begins_where_the_last_one_ended(form, precision, request, many, tmp_path):
    torch.manual_seed(0)
    settings = Pointwise(**SHORT, precision=precision, negatives=5)
    start = request.getfixturevalue(form)
    first = ranking.run(settings, start, many, Place(tmp_path / "first", 1, "cpu"))
    save_model(first.model, tmp_path / "saved")
    loaded = load_model(tmp_path / "saved")
    second = ranking.run(
        Listwise(**SHORT | {"max_steps": 1}, precision=precision),
        loaded,
        many,
        Place(tmp_path / "second", 1, "cpu"),
    )
    assert first.metrics[MEASURE] > first.metrics[f"{MEASURE} at the start"]
    assert second.metrics[f"{MEASURE} at the start"] == first.metrics[MEASURE]  # to the last digit
    if precision == "fp32":
        measured = Validation(Groups([many.validate]), MEASURE)(Ranker.load(tmp_path / "saved"))
        assert measured == pytest.approx(first.metrics[MEASURE], abs=1e-6)


def test_the_best_of_start_training_and_average_is_kept_and_measures_as_recorded(
    warm, many, tmp_path
):
    settings = Listwise(**SHORT, precision="fp32", average=0.9)
    listener = Listener()
    outcome = ranking.run(settings, warm, many, Place(tmp_path / "a", 1, "cpu", listener))
    figures = [
        outcome.metrics[f"{MEASURE} {of}"]
        for of in ("at the start", "of the trained weights", "of their average")
    ]
    assert len(set(figures)) == 3
    assert outcome.metrics[MEASURE] == max(figures)
    validation = Validation(Groups([many.validate]), MEASURE)
    with ranking.prepared(outcome.model, settings, device_of("cpu")):
        assert validation(ranker_of(outcome.model, None, device_of("cpu"), "fp32")) == max(figures)
    validated = [point[MEASURE] for point in outcome.history if MEASURE in point][1:]
    assert max(validated) == figures[1]
    gain = outcome.metrics["gain"]
    assert gain == pytest.approx(outcome.metrics[MEASURE] - figures[0])
    error = outcome.metrics["standard error of the gain"]
    assert f"{gain:+.4f} ± {error:.4f} over 120 queries" in listener.said[-1]


def test_the_noise_of_a_gain_by_hand():
    start = Validated(0.5, {"a": 0.5, "b": 0.5, "c": 0.5})
    gain = Gain.between(start, Validated(0.7, {"a": 0.7, "b": 0.5, "c": 0.9}))
    assert gain.mean == pytest.approx(0.2)
    assert gain.standard_error == pytest.approx(0.2 / sqrt(3))
    assert gain.within_noise
    assert str(gain) == "+0.2000 ± 0.1155 over 3 queries"
    even = Gain.between(start, Validated(0.6, {"a": 0.61, "b": 0.59, "c": 0.6}))
    assert not even.within_noise
    assert Gain.between(Validated(0.5, {"a": 0.5}), Validated(0.9, {"a": 0.9})).within_noise


def test_what_one_query_gains_is_no_reason_to_keep_a_training():
    start = Validated(0.5, {"a": 0.5, "b": 0.5, "c": 0.5})
    assert not Gain.between(start, Validated(0.6, {"a": 0.8, "b": 0.5, "c": 0.5})).accepted
    assert Gain.between(start, Validated(0.6, {"a": 0.8, "b": 0.6, "c": 0.4})).accepted
    assert not Gain.between(start, Validated(0.4, {"a": 0.3, "b": 0.4, "c": 0.5})).accepted
    assert Gain.between(Validated(0.5, {"a": 0.5}), Validated(0.9, {"a": 0.9})).accepted


def test_a_gain_within_the_noise_is_said(warm, many, tmp_path):
    few = replace(many, validate=tmp_path / "few.parquet")
    write_groups(few.validate, invent(4, candidates=12, seed=9), about={})
    listener = Listener()
    settings = Listwise(**SHORT, precision="fp32")
    outcome = ranking.run(settings, warm, few, Place(tmp_path / "a", 1, "cpu", listener))
    assert "over 4 queries" in listener.said[-1]
    assert "within the noise" in listener.said[-1]
    assert outcome.metrics["validation queries"] == 4


def test_gates_are_told_at_each_validation_and_at_the_end(warm, many, tmp_path):
    listener = Listener()
    settings = Listwise(**SHORT, precision="fp32")
    outcome = ranking.run(settings, warm, many, Place(tmp_path / "a", 1, "cpu", listener))
    told = [said for said in listener.said if "gates by layer" in said]
    assert [said.split(":")[0] for said in told] == ["step 4", "step 8", "step 12"]
    assert {name for name in outcome.metrics if name.startswith("gate ")} == {"gate 1", "gate 2"}
    assert outcome.metrics["gate 1"] == warm.network.gate[0].item()
