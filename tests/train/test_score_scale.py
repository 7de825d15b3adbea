"""The factor on the scores at which a loss begins."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from invented import invent
from secondlook.train.draw import Draw
from secondlook.train.losses.distil import KLDivergence, MarginMSE
from secondlook.train.losses.listwise import Listwise
from secondlook.train.phase import Place
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


@pytest.mark.parametrize("settings", [Listwise(), KLDivergence(), MarginMSE()])
def test_the_loss_is_least_there_and_the_scores_own_scale_does_not_matter(settings):
    factor = fit_score_scale(settings, Noisy(4.0), drawn())
    least = loss_at(settings, 4.0, factor)
    assert least <= min(loss_at(settings, 4.0, factor * step) for step in (0.5, 0.8, 1.25, 2))
    assert fit_score_scale(settings, Noisy(8.0), drawn()) == pytest.approx(factor / 2)


def test_it_is_found_once_and_kept_for_a_resume(tmp_path):
    noisy = Noisy(4.0)
    factor = kept_scale(Listwise(), noisy, drawn(), tmp_path)
    scored = noisy.pairs
    assert kept_scale(Listwise(), noisy, drawn(), tmp_path) == factor
    assert noisy.pairs == scored


def test_training_does_not_depend_on_the_scale_of_the_start(tmp_path, warm, data):
    """With alpha at 32 times what it was the loss, and so the encoder's gradient, is the same."""
    losses = []
    for name, alpha in (("low", 2.5), ("high", 80.0)):
        with torch.no_grad():
            warm.network.alpha.fill_(alpha)
        before = {key: value.clone() for key, value in warm.network.state_dict().items()}
        settings = Listwise(max_steps=2, batch=4, fit_score_scale=True, dropout=0.0)
        place = Place(tmp_path / name, 1, "cpu")
        outcome = run(settings, warm, replace(data, validate=None), place)
        losses.append([point["loss"] for point in outcome.history])
        warm.network.load_state_dict(before)
    factors = [
        json.loads((tmp_path / name / "score_scale.json").read_text()) for name in ("low", "high")
    ]
    assert factors[0] == pytest.approx(32 * factors[1])
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
