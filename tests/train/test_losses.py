"""Losses against numbers worked by hand, and their gradients against finite differences."""

from __future__ import annotations

import doctest
import io
import sys
from math import exp, log

import pytest
import torch

from secondlook.train.losses import LOSSES
from secondlook.train.losses.distil import KLDivergence, MarginMSE
from secondlook.train.losses.listwise import Listwise
from secondlook.train.losses.pairwise import Hinge, RankNet
from secondlook.train.losses.pointwise import Pointwise

SCORES = torch.tensor([2.0, 0.5, -1.0, 1.0], dtype=torch.float64)
POSITIVE = torch.tensor([True, False, False, True])
TEACHER = torch.tensor([3.0, 1.0, 0.0, 1.5], dtype=torch.float64)


def test_pointwise_is_the_two_class_softmax_of_equation_5():
    """The logits of the two classes are (0, s), so a positive costs log(1 + e^-s)."""
    by_hand = (log(1 + exp(-2)) + log(1 + exp(0.5)) + log(1 + exp(-1)) + log(1 + exp(-1))) / 4
    assert Pointwise().cost(SCORES, POSITIVE).item() == pytest.approx(by_hand, abs=1e-12)
    two = torch.stack([torch.zeros(4, dtype=torch.float64), SCORES], dim=1)
    softmax = torch.nn.functional.cross_entropy(two, POSITIVE.long())
    assert Pointwise().cost(SCORES, POSITIVE).item() == pytest.approx(softmax.item(), abs=1e-12)


def test_pointwise_gradient_is_probability_minus_label():
    scores = SCORES.clone().requires_grad_()
    Pointwise().cost(scores, POSITIVE).backward()
    labels = POSITIVE.tolist()
    by_hand = [(1 / (1 + exp(-s)) - y) / 4 for s, y in zip(SCORES.tolist(), labels, strict=True)]
    assert scores.grad.tolist() == pytest.approx(by_hand, abs=1e-12)


def test_listwise_is_equations_8_and_9():
    total = exp(2) + exp(0.5) + exp(-1) + exp(1)
    by_hand = (-log(exp(2) / total) - log(exp(1) / total)) / 2
    assert by_hand == pytest.approx(2.495_182 - 1.5, abs=1e-6)  # log of the sum, less the mean
    assert Listwise().cost(SCORES, POSITIVE).item() == pytest.approx(by_hand, abs=1e-12)


def test_listwise_gradient_is_the_share_minus_the_share_wanted():
    scores = SCORES.clone().requires_grad_()
    Listwise().cost(scores, POSITIVE).backward()
    total = exp(2) + exp(0.5) + exp(-1) + exp(1)
    by_hand = [exp(2) / total - 0.5, exp(0.5) / total, exp(-1) / total, exp(1) / total - 0.5]
    assert scores.grad.tolist() == pytest.approx(by_hand, abs=1e-12)


def test_graded_listwise_weighs_each_log_share_by_its_gain():
    grades = torch.tensor([3, 0, 0, 1])  # gains 7, 0, 0, 1
    total = exp(2) + exp(0.5) + exp(-1) + exp(1)
    by_hand = -(7 * log(exp(2) / total) + log(exp(1) / total)) / 8
    assert Listwise(graded=True).cost(SCORES, grades).item() == pytest.approx(by_hand, abs=1e-12)


def test_graded_listwise_with_equal_gains_is_listwise():
    equal = Listwise(graded=True).cost(SCORES, 2 * POSITIVE).item()
    assert equal == pytest.approx(Listwise().cost(SCORES, POSITIVE).item(), abs=1e-12)


def test_hinge_is_ccnus_over_all_pairs():
    """Of the margins 1.5, 3, 0.5 and 2 only 0.5 is below 1."""
    assert Hinge().cost(SCORES, POSITIVE).item() == pytest.approx(0.5 / 4, abs=1e-12)
    assert Hinge(margin=2.0).cost(SCORES, POSITIVE).item() == pytest.approx(2.0 / 4, abs=1e-12)


def test_hinge_gradient_touches_only_pairs_within_the_margin():
    scores = SCORES.clone().requires_grad_()
    Hinge().cost(scores, POSITIVE).backward()
    assert scores.grad.tolist() == pytest.approx([0.0, 0.25, 0.0, -0.25], abs=1e-12)


def test_ranknet_is_the_logistic_loss_of_every_difference():
    by_hand = sum(log(1 + exp(-margin)) for margin in (1.5, 3.0, 0.5, 2.0)) / 4
    assert RankNet().cost(SCORES, POSITIVE).item() == pytest.approx(by_hand, abs=1e-12)


def test_margin_mse_compares_differences_not_scores():
    """Ours 1.5, 3, 0.5, 2; the teacher's 2, 3, 0.5, 1.5."""
    wanted = (0.5**2 + 0 + 0 + 0.5**2) / 4
    assert MarginMSE().cost(SCORES, POSITIVE, TEACHER).item() == pytest.approx(wanted, abs=1e-12)
    assert MarginMSE().cost(TEACHER + 7, POSITIVE, TEACHER).item() == 0


def test_kl_is_nothing_for_the_teachers_own_order_and_scale():
    assert KLDivergence().cost(TEACHER + 3, POSITIVE, TEACHER).item() == pytest.approx(0, abs=1e-12)
    assert KLDivergence(temperature=2.0).cost(
        TEACHER / 2, POSITIVE, TEACHER
    ).item() == pytest.approx(0, abs=1e-12)


def test_kl_by_hand():
    scores = torch.tensor([0.0, 0.0], dtype=torch.float64)
    teacher = torch.tensor([log(3.0), 0.0], dtype=torch.float64)  # shares 3/4 and 1/4
    by_hand = 0.75 * log(0.75 / 0.5) + 0.25 * log(0.25 / 0.5)
    assert KLDivergence().cost(scores, POSITIVE, teacher).item() == pytest.approx(
        by_hand, abs=1e-12
    )


@pytest.mark.parametrize("name", LOSSES.names())
def test_every_loss_says_inputs_formula_and_paper_with_an_example_that_runs(name):
    loss = LOSSES[name]
    assert loss.name() == name
    for part in ("Inputs:", "Formula:", "Paper:"):
        assert part in loss.__doc__
    (example,) = doctest.DocTestFinder().find(loss, globs=vars(sys.modules[loss.__module__]))[:1]
    assert example.examples
    told = io.StringIO()
    assert not doctest.DocTestRunner().run(example, out=told.write).failed, told.getvalue()


@pytest.mark.parametrize(
    "loss",
    [
        lambda scores: Pointwise().cost(scores, POSITIVE),
        lambda scores: Listwise().cost(scores, POSITIVE),
        lambda scores: Listwise(graded=True).cost(scores, 2 * POSITIVE),
        lambda scores: Hinge().cost(scores, POSITIVE),
        lambda scores: RankNet().cost(scores, POSITIVE),
        lambda scores: MarginMSE().cost(scores, POSITIVE, TEACHER),
        lambda scores: KLDivergence(temperature=2.0).cost(scores, POSITIVE, TEACHER),
    ],
    ids=["pointwise", "listwise", "graded", "hinge", "ranknet", "margin_mse", "kl"],
)
def test_gradients_agree_with_finite_differences(loss):
    assert torch.autograd.gradcheck(loss, SCORES.clone().requires_grad_())
