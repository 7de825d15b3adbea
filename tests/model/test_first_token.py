"""The last layer is computed for the first token alone where a score is made of that."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import onnx
import pytest
import torch

import tiny
from secondlook.model.first_token import first_token_only
from secondlook.model.joint import Joint
from secondlook.model.onnx_graph import write_onnx

IDS = torch.ones(2, 9, dtype=torch.int64)
BY_FIRST_TOKEN = ["bert", "electra", "roberta", "xlm-roberta"]


def _batch(network, *lengths):
    return {name: rows for name, rows in tiny.batch(*lengths).items() if name in network.inputs}


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("strm", [False, True])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_scores_and_gradients_are_the_same(family, strm, attention):
    network = Joint(tiny.classifier(family), strm=strm)
    network.encoder.set_attn_implementation(attention)
    batch = _batch(network, 33, 8, 21)
    other = deepcopy(network)
    expected = network(**batch)
    expected.square().sum().backward()
    with first_token_only(other):
        made = other(**batch)
    made.square().sum().backward()
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)
    for (name, mine), theirs in zip(other.named_parameters(), network.parameters(), strict=True):
        if theirs.grad is None:
            assert mine.grad is None, name
        else:
            torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_other_tokens_are_left_out_where_they_are_not_read_and_are_back_behind(family):
    network = Joint(tiny.classifier(family), strm=False)
    read = {name: rows for name, rows in _batch(network, 9, 9).items() if name != "words"}
    with first_token_only(network):
        within = network.encoder(**read).last_hidden_state.shape[1]
    assert within == (1 if family in BY_FIRST_TOKEN else 9)
    assert network.encoder(**read).last_hidden_state.shape[1] == 9


def test_they_are_back_after_an_error_too():
    network = Joint(tiny.classifier(), strm=False)
    with pytest.raises(KeyError), first_token_only(network):
        raise KeyError
    assert network.encoder(IDS).last_hidden_state.shape[1] == 9


def test_a_copy_made_within_has_its_own_layer():
    network = Joint(tiny.classifier(), strm=False)
    batch = _batch(network, 9, 12)
    with first_token_only(network):
        copy = deepcopy(network)
    expected = network(**batch)
    with torch.no_grad():
        network.encoder.encoder.layer[-1].output.dense.weight.zero_()
    with first_token_only(copy):
        torch.testing.assert_close(copy(**batch), expected)
        assert copy.encoder(IDS).last_hidden_state.shape[1] == 1


def test_other_threads_and_other_networks_get_all_tokens_meanwhile():
    network, other = (Joint(tiny.classifier(), strm=False) for _ in range(2))
    with first_token_only(network), ThreadPoolExecutor(1) as threads:
        assert threads.submit(network.encoder, IDS).result().last_hidden_state.shape[1] == 9
        with first_token_only(other):
            assert other.encoder(IDS).last_hidden_state.shape[1] == 1
            assert network.encoder(IDS).last_hidden_state.shape[1] == 1
        assert other.encoder(IDS).last_hidden_state.shape[1] == 9
        assert network.encoder(IDS).last_hidden_state.shape[1] == 1


def test_an_encoder_without_a_head_is_left_as_it_is():
    encoder = tiny.encoder()
    with first_token_only(encoder):
        assert encoder(IDS).last_hidden_state.shape[1] == 9


def test_a_graph_leaves_them_out(tmp_path):
    """The widest product of the last layer is of one token."""
    write_onnx(Joint(tiny.classifier(), strm=False), tmp_path / "model.onnx")
    graph = onnx.shape_inference.infer_shapes(onnx.load(tmp_path / "model.onnx")).graph
    shapes = {
        value.name: [one.dim_value or one.dim_param for one in value.type.tensor_type.shape.dim]
        for value in graph.value_info
    }
    wide = [
        shapes[node.output[0]]
        for node in graph.node
        if node.op_type in ("MatMul", "Gemm") and shapes[node.output[0]][-1] == 48
    ]
    tokens = [shape[1] for shape in wide]
    assert len(tokens) == 2
    assert tokens[0] != 1
    assert tokens[1] == 1
