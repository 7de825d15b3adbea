"""DeepCT's network and its folder."""

from __future__ import annotations

import json

import pytest
import torch

import tiny
from secondlook.errors import CheckpointProblem
from secondlook.model.deepct import DeepCT, load_weigher, new_weigher, save_weigher


def batch():
    made = tiny.batch(9, 6)
    del made["first"]
    return made


def test_a_word_weighs_the_mean_of_its_tokens_and_padding_says_nothing():
    network = DeepCT(tiny.encoder()).eval()
    both = batch()
    weights = network(**both)["weights"]
    states = network.encoder(
        input_ids=both["input_ids"],
        attention_mask=both["attention_mask"],
        token_type_ids=both["token_type_ids"],
    ).last_hidden_state
    by_token = network.head(states).squeeze(-1)
    for word in range(int(both["words"][0].max()) + 1):
        own = by_token[0][both["words"][0] == word]
        expected = own.mean() if len(own) else torch.tensor(0.0)
        torch.testing.assert_close(weights[0, word], expected)
    alone = network(**{name: rows[1:, :6] for name, rows in both.items()})["weights"]
    torch.testing.assert_close(weights[1:, : alone.shape[1]], alone)


def test_the_loss_is_the_mean_squared_error_over_words():
    network = DeepCT(tiny.encoder()).eval()
    both = batch()
    weights = network(**both)["weights"].detach()
    targets = torch.full_like(weights, float("nan"))
    targets[0, 1], targets[1, 2] = 0.5, 0.0
    expected = ((weights[0, 1] - 0.5) ** 2 + weights[1, 2] ** 2) / 2
    torch.testing.assert_close(network(**both, targets=targets)["loss"].detach(), expected)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_a_saved_weigher_weighs_as_before(tmp_path, family):
    base = tiny.save(tiny.encoder(family), tmp_path / "base")
    made = new_weigher(base, 64)
    save_weigher(made, tmp_path / "weigher")
    again = load_weigher(tmp_path / "weigher")
    assert again.settings == made.settings
    both = batch()
    torch.testing.assert_close(again.network(**both), made.network(**both))


def test_special_tokens_spelled_out_in_a_text_are_words_of_it(tmp_path):
    made = new_weigher(tiny.save(tiny.encoder(), tmp_path / "base"), 64)
    save_weigher(made, tmp_path / "weigher")
    for model in (made, load_weigher(tmp_path / "weigher")):
        ids = model.tokenizer.encode("the sea [MASK]", add_special_tokens=False).ids
        assert model.tokenizer.token_to_id("[MASK]") not in ids


def test_what_is_no_weigher_or_unsafe_is_refused(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    with pytest.raises(CheckpointProblem, match="weigh train"):
        load_weigher(base)
    save_weigher(new_weigher(base, 64), tmp_path / "weigher")
    head = tmp_path / "weigher" / "weigher.safetensors"
    head.write_bytes(head.read_bytes()[:20])
    with pytest.raises(CheckpointProblem, match="damaged"):
        load_weigher(tmp_path / "weigher")
    head.unlink()
    with pytest.raises(CheckpointProblem, match="fetch all of it"):
        load_weigher(tmp_path / "weigher")
    (tmp_path / "weigher" / "model.safetensors").rename(tmp_path / "weigher" / "pytorch_model.bin")
    with pytest.raises(CheckpointProblem, match="pickle"):
        load_weigher(tmp_path / "weigher")
    config = json.loads((base / "config.json").read_text())
    foreign = {"model_type": "evil", "auto_map": {"AutoModel": "x.Y"}}
    (base / "config.json").write_text(json.dumps(config | foreign))
    with pytest.raises(CheckpointProblem, match="never run"):
        new_weigher(base, 64)
