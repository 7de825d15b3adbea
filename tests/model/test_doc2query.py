"""The model that asks queries, and its folder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

import tiny
from secondlook.errors import CheckpointProblem
from secondlook.model.doc2query import _Draw, load_expander, new_expander, sample, save_expander

PASSAGES = [("a", "the deep sea"), ("b", "a river in the cape"), ("c", "fish")]


def asked(model, passages, count=2, seed=1):
    device = torch.device("cpu")
    return sample(model, passages, count, top_k=5, seed=seed, device=device)


def test_a_saved_expander_asks_as_before_and_a_passage_draws_for_itself(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    made = new_expander(base, 40, 6)
    save_expander(made, tmp_path / "expander")
    again = load_expander(tmp_path / "expander")
    assert again.settings == made.settings
    first = asked(made, PASSAGES)
    assert [len(queries) for queries in first] == [2, 2, 2]
    assert asked(again, PASSAGES) == first
    assert asked(made, PASSAGES[1:2]) == first[1:2]
    assert asked(made, PASSAGES, seed=2) != first


def test_a_seq2seq_model_is_taken_as_it_is(tmp_path):
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=tiny.SIZE, d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=3,
    )  # fmt: skip
    base = tiny.save(transformers.T5ForConditionalGeneration(config), tmp_path / "t5")
    made = new_expander(base, 40, 6)
    assert made.network.config.model_type == "t5"
    assert len(asked(made, PASSAGES)) == 3
    assert asked(load_expander(base), PASSAGES)  # as others' doc2query models are


def test_a_decoder_begins_from_the_encoders_own_attention(tmp_path):
    network = new_expander(tiny.save(tiny.encoder(), tmp_path / "base"), 40, 6).network
    layer = network.decoder.bert.encoder.layer[0]
    torch.testing.assert_close(
        layer.crossattention.self.query.weight, layer.attention.self.query.weight
    )


def test_long_texts_end_as_they_should(tmp_path):
    made = new_expander(tiny.save(tiny.encoder(), tmp_path / "base"), 16, 4)
    (passage,) = made.passages(["the sea " * 30])
    assert (len(passage), passage[0], passage[-1]) == (16, 2, 3)
    (query,) = made.queries(["what is the deep sea"])
    assert (len(query), query[-1]) == (3, 3)  # without the token the decoder starts from


def test_special_tokens_spelled_out_in_a_text_are_words_of_it(tmp_path):
    made = new_expander(tiny.save(tiny.encoder(), tmp_path / "base"), 40, 6)
    separator = made.tokenizer.token_to_id("[SEP]")
    [ids] = made.passages(["the sea [SEP] fish"])
    assert ids.count(separator) == 1
    assert ids[-1] == separator


def test_draws_follow_the_softmax_over_the_likeliest():
    logits = torch.tensor([[2.0, 1.0, 0.0, -9.0]]).repeat(20_000, 1)
    draw = _Draw([np.random.default_rng(7)], 20_000, 3)
    drawn = draw(torch.empty(0), logits).argmax(-1)
    shares = torch.bincount(drawn, minlength=4) / 20_000
    expected = torch.cat([logits[0, :3].softmax(-1), torch.zeros(1)])
    torch.testing.assert_close(shares, expected, atol=0.015, rtol=0)


def test_what_is_no_expander_is_refused(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    with pytest.raises(CheckpointProblem, match="expand train"):
        load_expander(base)
