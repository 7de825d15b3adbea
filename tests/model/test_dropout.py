"""Dropout is set wherever a family keeps it."""

import pytest
import torch
from torch import nn

import tiny
from secondlook.model.dropout import set_dropout
from secondlook.model.joint import Joint


def network(family):
    known = family in tiny.ENCODER_DECODERS
    return Joint(tiny.encoder_decoder(family) if known else tiny.classifier(family), strm=False)


@pytest.mark.parametrize("family", [*tiny.FAMILIES, *tiny.ENCODER_DECODERS])
def test_nothing_is_dropped_at_zero_and_something_above(family):
    made = network(family).train()
    batch = {name: rows for name, rows in tiny.batch(20, 20).items() if name in made.inputs}
    batch["input_ids"][:, -1] = 3  # where BART's and T5's classifiers read
    for probability in (0.0, 0.5):
        set_dropout(made, probability)
        first, again = made(**batch), made(**batch)
        assert torch.equal(first, again) is (probability == 0)


def test_the_numbers_of_bart_are_set_and_those_of_an_lstm_are_not():
    layer = network("bart").encoder.encoder.layers[0]
    recurrent = nn.LSTM(2, 2)
    set_dropout(nn.ModuleList([layer, recurrent]), 0.3)
    numbers = (layer.dropout, layer.activation_dropout, layer.self_attn.dropout, recurrent.dropout)
    assert numbers == (0.3, 0.3, 0.3, 0.0)
