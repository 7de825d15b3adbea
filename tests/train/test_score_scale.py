"""The factor on the scores at which a loss begins."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from invented import invent
from secondlook.train.draw import Draw
from secondlook.train.groups import write_groups
from secondlook.train.losses.distil import KLDivergence, MarginMSE
from secondlook.train.losses.listwise import Listwise
from secondlook.train.losses.pairwise import RankNet
from secondlook.train.phase import Place
from secondlook.train.ranker import ranker_of
from secondlook.train.ranking import run
from secondlook.train.score_scale import fit_score_scale, kept_scale


class Noisy:
    """Puts the relevant document first two times of three, by as much as `size` says."""

    def __init__(self, size: float) -> None:
        self.size, self.pairs = size, 0

    def score(self, pairs):
        self.pairs += len(pairs)
        best = [
            f"{query.id.replace('q', 'd')}-{int(query.id[1:]) % 3 == 0:d}" for query, _ in pairs
        ]
        scores = [float(doc.id == name) for (_, doc), name in zip(pairs, best, strict=True)]
        return np.array(scores, np.float32) * self.size


def drawn(count=12):
    draw = Draw(1, 5, seed="1")
    return [draw.documents(group, 0) for group in invent(count, teacher=True)]


def loss_at(settings, size, factor):
    groups = drawn()
    costs = []
    for group in groups:
        scores = Noisy(size).score([(group.query, document) for document in group.documents])
        teacher = torch.tensor(group.teacher)
        costs.append(
            settings.cost(factor * torch.from_numpy(scores), torch.tensor(group.labels), teacher)
        )
    return torch.stack(costs).mean().item()


@pytest.mark.parametrize("settings", [KLDivergence(), MarginMSE()])
def test_the_loss_is_least_there(settings):
    factor = fit_score_scale(settings, Noisy(4.0), drawn())
    least = loss_at(settings, 4.0, factor)
    assert least <= min(loss_at(settings, 4.0, factor * step) for step in (0.5, 0.8, 1.25, 2))


@pytest.mark.parametrize("settings", [Listwise(), KLDivergence(), RankNet()])
def test_the_scores_own_scale_does_not_matter(settings):
    factor = fit_score_scale(settings, Noisy(4.0), drawn())
    assert fit_score_scale(settings, Noisy(8.0), drawn()) == pytest.approx(factor / 2)


def test_lists_that_are_all_in_order_have_a_scale_too():
    """The positive has about .9 of the probability: one label in ten is taken to be wrong."""

    class Right(Noisy):
        def score(self, pairs):
            return np.array([float(d.id.endswith("-0")) * self.size for _, d in pairs], np.float32)

    factor = fit_score_scale(Listwise(), Right(4.0), drawn())
    shares = torch.tensor([4.0 * factor, 0.0, 0.0, 0.0, 0.0, 0.0]).softmax(dim=0)
    assert 0.8 < shares[0] < 0.95


def test_it_is_found_once_and_kept_for_a_resume(tmp_path):
    noisy = Noisy(4.0)
    factor = kept_scale(Listwise(), noisy, drawn(), tmp_path)
    scored = noisy.pairs
    assert kept_scale(Listwise(), noisy, drawn(), tmp_path) == factor
    assert noisy.pairs == scored


def test_training_reads_the_scores_times_the_factor(tmp_path, warm, data):
    """The teacher's scores are those of the start with alpha at 10: the loss begins at 0."""
    network = warm.network
    with torch.no_grad():
        network.alpha.fill_(10.0)
    scorer = ranker_of(warm, None, torch.device("cpu"), "fp32")
    groups = [
        replace(group, teacher=tuple(scorer.score([(group.query, d) for d in group.documents])))
        for group in invent(8)
    ]
    write_groups(tmp_path / "taught.parquet", groups, about={})
    taught = replace(data, train=(tmp_path / "taught.parquet",), validate=None)
    first = []
    for fit in (False, True):
        with torch.no_grad():
            network.alpha.fill_(80.0)
        before = {name: weight.clone() for name, weight in network.state_dict().items()}
        settings = KLDivergence(max_steps=1, batch=8, fit_score_scale=fit, dropout=0.0)
        outcome = run(settings, warm, taught, Place(tmp_path / f"{fit}", 1, "cpu"))
        first.append(outcome.history[0]["loss"])
        network.load_state_dict(before)
    assert first[0] > 0.1
    assert first[1] == pytest.approx(0, abs=1e-3)
    kept = json.loads((tmp_path / "True" / "score_scale.json").read_text())
    assert kept == pytest.approx(1 / 8)
    assert not (tmp_path / "False" / "score_scale.json").exists()
