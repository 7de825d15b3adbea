"""The frozen phase: it learns, by the hinge, and computes each text's features once."""

import pytest
import torch

from secondlook.errors import SecondlookError
from secondlook.model.frozen import Frozen
from secondlook.model.network import new_frozen
from secondlook.model.settings import FrozenSettings
from secondlook.train.frozen import Kept, run
from secondlook.train.frozen_settings import FrozenPhase
from secondlook.train.phase import Place

SMALL = FrozenSettings(hidden=16, mlp=16)


def test_the_hinge_and_its_gradient_are_ccnu_s():
    """max(0, 1 - S(q, p⁺) + S(q, p⁻)): .2, .9 and -1 below .5 cost .7, 1.4 and nothing."""
    scores = torch.tensor([0.5, 0.2, 0.9, -1.0], requires_grad=True)
    positive = torch.tensor([True, False, False, False])
    loss = FrozenPhase().cost(scores, positive)
    assert loss.item() == pytest.approx((0.7 + 1.4 + 0) / 3)
    loss.backward()
    assert scores.grad.tolist() == pytest.approx([-2 / 3, 1 / 3, 1 / 3, 0])


def test_twenty_groups_are_learnt(tmp_path, joint, data):
    settings = FrozenPhase(
        form=SMALL, max_steps=60, batch=20, negatives=5, learning_rate=2e-2, dropout=0.0,
        precision="fp32", validate_every=20,
    )  # fmt: skip
    before = {n: w.clone() for n, w in joint.network.classifier.base_model.state_dict().items()}
    outcome = run(settings, joint, data, Place(tmp_path / "work", seed=7))
    assert outcome.metrics["nDCG@10"] == pytest.approx(1.0)
    assert outcome.metrics["nDCG@10 at the start"] < 0.8
    network = outcome.model.network
    assert isinstance(network, Frozen)
    assert network.recall is None
    assert outcome.model.settings.trained
    for name, weight in network.encoder.state_dict().items():
        assert torch.equal(weight, before[name])


def test_several_processes_are_refused(tmp_path, joint, data, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SecondlookError, match="without torchrun"):
        run(FrozenPhase(form=SMALL), joint, data, Place(tmp_path / "work", seed=7))


def test_the_features_of_a_text_are_computed_once(tmp_path, joint):
    network = new_frozen(joint, SMALL).network
    computed = []
    features = network.features

    def counted(ids, mask, words):
        computed.append(len(ids))
        return features(ids, mask, words)

    network.features = counted
    ids = torch.tensor([[2, 7, 8, 3], [2, 9, 3, 0], [2, 7, 8, 3]])
    mask = ids > 0
    kept = Kept(network, tmp_path / "features.f16")
    first = kept(ids, mask, None)
    assert sum(computed) == 2  # the third text is the first
    torch.testing.assert_close(first[0].float(), features(ids, mask, None)[0], atol=1e-2, rtol=1e-2)
    assert torch.equal(kept(ids[:2], mask[:2], None), first[:2])
    more = torch.tensor([[2, 9, 3, 0, 0], [2, 9, 9, 9, 3]])
    assert torch.equal(kept(more, more > 0, None)[0, :3], first[1, :3])
    assert sum(computed) == 3
    with (tmp_path / "features.f16").open("ab") as file:
        file.write(b"half a record, as a kill leaves it")
    again = Kept(network, tmp_path / "features.f16")
    assert torch.equal(again(ids, mask, None), first)
    assert sum(computed) == 3
    again(torch.tensor([[2, 5, 3]]), torch.ones(1, 3).bool(), None)
    assert torch.equal(Kept(network, tmp_path / "features.f16")(ids, mask, None), first)
    assert sum(computed) == 4


def test_words_tell_texts_apart_where_strm_reads_them(tmp_path, joint):
    network = new_frozen(joint, SMALL).network
    kept = Kept(network, tmp_path / "features.f16")
    ids, mask = torch.tensor([[2, 9, 10, 3]]), torch.ones(1, 4).bool()
    one_word = kept(ids, mask, torch.tensor([[4, 5, 5, 6]]))
    two_words = kept(ids, mask, torch.tensor([[0, 1, 2, 3]]))
    assert not torch.equal(one_word, two_words)
    assert torch.equal(kept(ids, mask, torch.tensor([[0, 1, 1, 2]])), one_word)
