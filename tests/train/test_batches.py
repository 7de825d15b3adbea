from __future__ import annotations

import numpy as np
import pytest
import torch

from invented import invent
from secondlook.encode.encoder import Encoder
from secondlook.encode.settings import EncodeSettings, WindowSettings
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import TorchBackend
from secondlook.train.batches import EncodeGroups, cut, score
from secondlook.train.draw import Draw

CPU = torch.device("cpu")


def encoded(model, count=5, **encode):
    settings = model.settings.encode.model_copy(update=encode)
    draw = Draw(1, 5, seed="7")
    drawn = [draw.documents(group, 0) for group in invent(count)]
    return drawn, EncodeGroups(Encoder(model.tokenizer, settings))(drawn)["groups"]


def scored(model, groups, tokens, windows=None):
    with torch.no_grad():
        return score(
            model.network,
            model.network.inputs,
            groups,
            pad_id=model.network.pad_id,
            positions=model.network.positions,
            forward_tokens=tokens,
            device=CPU,
            windows=windows,
        )


@pytest.mark.parametrize("form", ["joint", "warm"])
@pytest.mark.parametrize("tokens", [1, 40, 10_000])
def test_scores_are_those_of_the_ranker_however_pairs_are_put_together(form, tokens, request):
    model = request.getfixturevalue(form)
    drawn, groups = encoded(model)
    ranker = Ranker(model.settings, model.tokenizer, TorchBackend(model.network, device="cpu"))
    for one, found in zip(drawn, scored(model, groups, tokens), strict=True):
        wanted = ranker.score([(one.query, document) for document in one.documents])
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-4)


@pytest.mark.parametrize(
    "windows",
    [
        WindowSettings(length=3, stride=2, pooling="max"),
        WindowSettings(length=3, stride=2, pooling="mean"),
        WindowSettings(length=3, stride=2, pooling="first"),
        WindowSettings(length=3, stride=2, pooling="top", weights=(0.5, 0.3, 0.2)),
    ],
    ids=lambda windows: windows.pooling,
)
def test_windows_are_pooled_in_training_as_in_scoring(windows, joint):
    encode = EncodeSettings.model_validate(
        joint.settings.encode.model_dump() | {"windows": windows.model_dump()}
    )
    settings = joint.settings.model_copy(update={"encode": encode})
    drawn, groups = encoded(joint, windows=windows)
    ranker = Ranker(settings, joint.tokenizer, TorchBackend(joint.network, device="cpu"))
    assert max(group.windows[0] for group in groups) > (windows.pooling != "first")
    for one, found in zip(drawn, scored(joint, groups, 100, windows), strict=True):
        wanted = ranker.score([(one.query, document) for document in one.documents])
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-4)


def test_a_step_is_cut_between_groups_only(joint):
    _, groups = encoded(joint)
    most = groups[0].tokens + groups[1].tokens
    parts = cut(groups, most)
    assert [group for part in parts for group in part] == groups
    assert all(len(part) == 1 or sum(one.tokens for one in part) <= most for part in parts)
    assert len(parts[0]) == 2
    assert [len(part) for part in cut(groups, 1)] == [1] * 5
