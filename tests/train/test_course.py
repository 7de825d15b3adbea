"""A step has the examples it says, however it is cut, and a training that diverged is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiny
from secondlook.encode.features import Features
from secondlook.errors import SecondlookError
from secondlook.model.deepct import DeepCT
from secondlook.train import deepct
from secondlook.train.course import Course, Shown, TrainingExamples, teach
from secondlook.train.phase import Place
from secondlook.train.settings import AdaptPhase, ExpanderTraining, WeigherTraining

EXAMPLES = [(float(number), 3 * number) for number in range(10)]
COURSE = Course(
    steps=3,
    learning_rate=0.1,
    batch=5,
    at_once=5,
    warmup=0.0,
    weight_decay=0.0,
    precision="fp32",
    save_every=None,
)


def numbers(gathered):
    return {"loss": float(len(gathered["numbers"]))}


class Line(nn.Module):
    """Learns a slope; like the seq2seq models of transformers it takes keywords of any name."""

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(()))

    def forward(self, numbers, labels, **_):
        return {"loss": (self.slope * numbers - labels).square().mean()}


class Corner(Line):
    """Has a finite loss, 0, whose gradient is none."""

    def forward(self, numbers, labels, **_):
        return {"loss": (self.slope * 0).sqrt()}


def taught(folder, network, **changes):
    """What was logged, and the sizes of the forwards."""
    course, sizes = replace(COURSE, **changes), []

    def gather(examples):
        sizes.append(len(examples))
        numbers, labels = zip(*examples, strict=True)
        return {"numbers": torch.tensor(numbers), "labels": torch.tensor(labels)}

    shown = Shown(lambda item, _: EXAMPLES[item], range(len(EXAMPLES)), course.shown, seed=1)
    exercise = TrainingExamples(course, shown, gather, "line", "learning", numbers)
    logged = teach(network, exercise, Place(folder, 1, "cpu"), torch.device("cpu"))
    return [point for point in logged if "loss" in point], sizes


@pytest.mark.parametrize(("at_once", "sizes"), [(2, [2, 2, 1]), (4, [3, 2]), (1, [1] * 5)])
def test_a_step_is_the_same_in_however_many_forwards(tmp_path, at_once, sizes):
    whole, forwards = taught(tmp_path / "whole", Line())
    assert forwards == [5] * 3
    cut, forwards = taught(tmp_path / "cut", Line(), at_once=at_once)
    assert forwards == sizes * 3
    for name in ("loss", "grad_norm"):
        assert [at[name] for at in cut] == pytest.approx([at[name] for at in whole], rel=1e-5)


def test_words_count_alike_whichever_forward_they_are_in(tmp_path):
    """The mean over a step's words is not the mean of its forwards' means."""
    examples = []
    for size, target in ((1, 1.0), (30, 0.0), (5, 0.5)):
        ids = np.array([2, *range(10, 10 + size), 3], np.int32)
        words = np.array([-1, *range(size), -1], np.int32)
        features = Features(ids, np.zeros_like(ids), words, 0, 0)
        examples.append(deepct.Example(features, np.full(size, target, np.float32)))
    logged = []
    for at_once in (3, 1):
        network = DeepCT(tiny.encoder())
        torch.nn.init.constant_(network.head.weight, 0.1)
        network.head.bias.data.zero_()
        course = replace(COURSE, batch=3, at_once=at_once, learning_rate=1e-3)
        shown = Shown(lambda item, _: examples[item], range(3), course.shown, seed=1)
        gather = partial(deepct.gather, network=network)
        exercise = TrainingExamples(course, shown, gather, "weigh", "learning", deepct.counts)
        for module in network.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        place = Place(tmp_path / str(at_once), 1, "cpu")
        logged.append(teach(network, exercise, place, torch.device("cpu")))
    for name in ("loss", "grad_norm"):
        whole, cut = ([point[name] for point in points if name in point] for points in logged)
        assert cut == pytest.approx(whole, rel=1e-3)


@pytest.mark.parametrize(
    "settings",
    [WeigherTraining(batch=20), ExpanderTraining(batch=17), AdaptPhase(corpus="c", batch=40)],
)
def test_epochs_show_every_example_as_often_as_they_say(settings):
    examples = settings.batch * 100
    course = Course.of(settings, examples)
    assert course.shown == settings.epochs * examples
    assert course.forward <= settings.at_once


def test_a_loss_that_is_no_number_stops_the_training(tmp_path):
    with pytest.raises(SecondlookError, match=r"the loss is inf at step 2.*lower `learning_rate`"):
        taught(tmp_path, Line(), learning_rate=1e38)


def test_weights_that_the_last_step_ruined_are_refused_each_time(tmp_path):
    for _ in range(2):  # the second time all steps are done
        with pytest.raises(SecondlookError, match="weights are not finite at step 1"):
            taught(tmp_path, Corner(), steps=1)
