"""Scores here beside those of sentence-transformers, and a ranker after one step of training."""

from __future__ import annotations

import numpy as np
import torch

import tiny
from layouts import PAIRS
from secondlook.encode.encoder import Encoder
from secondlook.encode.features import collate
from secondlook.model.network import load_model, new_joint, save_model
from secondlook.score.ranker import Ranker
from secondlook.types import Document, Query


def change(path, **values):
    tiny.write_json(path, tiny.read_json(path) | values)


def pairs_of(pairs=PAIRS):
    return [(Query("", query), Document("", text)) for query, text in pairs]


def raw(ranker, pairs=PAIRS):
    return ranker.score(pairs_of(pairs))


def raw_there(there, pairs=PAIRS):
    scores = there.predict(list(pairs), activation_fn=torch.nn.Identity())
    return scores[:, 1] - scores[:, 0] if scores.ndim == 2 else scores


def assert_scores_alike(path, there, tmp_path, pairs=PAIRS):
    """As it comes, and after it went through a checkpoint of ours."""
    here = Ranker.load(path, device="cpu")
    expected = raw_there(there, pairs)
    assert np.ptp(expected) > 1e-2
    np.testing.assert_allclose(raw(here, pairs), expected, atol=1e-4)
    save_model(load_model(path), tmp_path / "ours")
    again = Ranker.load(tmp_path / "ours", device="cpu")
    np.testing.assert_allclose(raw(again, pairs), expected, atol=1e-4)
    return again


def trained_one_step(path, output):
    """The ranker after a step of training that changes all of its scores."""
    model = new_joint(path)
    network = model.network.train()
    features = Encoder(model.tokenizer, model.settings.encode).encode(pairs_of(PAIRS[:4]))
    batch = collate(features, network.pad_id, network.positions)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05)
    scores = network(**{name: torch.from_numpy(batch[name]) for name in network.inputs})
    torch.nn.functional.softplus(-scores * torch.tensor([1.0, -1.0, 1.0, -1.0])).sum().backward()
    optimiser.step()
    save_model(model, output)
    return output
