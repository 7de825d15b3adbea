from __future__ import annotations

import pytest
import torch

from secondlook.train import ranking
from secondlook.train.phase import Place
from secondlook.train.settings import DistilPhase, ListwisePhase, PairwisePhase, PointwisePhase

FAST = {
    "batch": 10,
    "max_steps": 80,
    "learning_rate": 5e-3,
    "dropout": 0.0,
    "precision": "fp32",
    "validate_every": 20,
    "patience": 2,
}


@pytest.fixture(autouse=True)
def random_heads():
    torch.manual_seed(0)


@pytest.mark.parametrize("form", ["joint", "warm"])
@pytest.mark.parametrize(
    "settings",
    [
        PointwisePhase(**FAST, negatives=5),
        ListwisePhase(**FAST),
        PairwisePhase(**FAST, negatives=5),
        PairwisePhase(**FAST, negatives=5, loss="ranknet"),
        DistilPhase(**FAST),
        DistilPhase(**FAST, loss="margin_mse"),
    ],
    ids=["pointwise", "listwise", "hinge", "ranknet", "kl", "margin_mse"],
)
def test_twenty_groups_are_learnt_perfectly(settings, form, request, data, tmp_path):
    start = request.getfixturevalue(form)
    outcome = ranking.run(settings, start, data, Place(tmp_path / "work", seed=1, device="cpu"))
    assert outcome.metrics["nDCG@10"] == 1.0
    assert outcome.metrics["nDCG@10 at the start"] < 0.9
    assert outcome.model.settings.trained
