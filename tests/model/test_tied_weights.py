"""Weights with several names are saved by one of them, and loaded by it."""

from copy import deepcopy

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import tiny
from secondlook.model.joint import Joint


@pytest.mark.parametrize("family", tiny.ENCODER_DECODERS)
def test_the_word_embeddings_of_both_halves_are_saved_once_and_loaded_for_both(family, tmp_path):
    network = Joint(tiny.encoder_decoder(family), strm=False)
    every = dict(network.named_parameters(remove_duplicate=False))
    state = network.state_dict()
    shared = {name for name in state if ".shared." in name}
    assert every.keys() - state.keys() == {
        name for name in every if name.endswith("embed_tokens.weight")
    }
    assert len(shared) == 1
    save_file(state, tmp_path / "model.safetensors")
    other = deepcopy(network)
    for weight in other.parameters():
        weight.data.zero_()
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    batch = {name: rows for name, rows in tiny.batch(9, 9).items() if name in network.inputs}
    batch["input_ids"][:, -1] = network.encoder.config.eos_token_id  # the classifiers read it there
    torch.testing.assert_close(other.eval()(**batch), network.eval()(**batch))
    other.load_state_dict(every)  # as earlier versions named them


def test_what_a_larger_network_holds_is_saved_once_as_well():
    joint = Joint(tiny.encoder_decoder("bart"), strm=False)
    whole = nn.ModuleDict({"network": joint, "head": nn.Linear(2, 2)})
    state = whole.state_dict()
    assert len({weight.data_ptr() for weight in state.values()}) == len(state)
    whole.load_state_dict(state)


def test_a_network_without_shared_weights_names_all():
    network = Joint(tiny.classifier(), strm=False)
    assert network.state_dict().keys() >= dict(network.named_parameters()).keys()
    lacking = network.state_dict()
    del lacking["classifier.classifier.bias"]
    with pytest.raises(RuntimeError, match="Missing"):
        network.load_state_dict(lacking)
