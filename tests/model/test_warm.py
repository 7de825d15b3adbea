import pytest
import torch
from torch.nn.functional import cosine_similarity

import tiny
from secondlook.errors import CheckpointProblem
from secondlook.model.warm import ALPHA, GATE, LEAST_GATE, Warm


def warm(family="bert", **changes):
    settings = {"strm": False, "pooling": "mean", "separate_layers": 0} | changes
    return Warm(tiny.encoder(family), **settings).eval()


def scores(network, batch):
    with torch.no_grad():
        return network(**{name: batch[name] for name in network.inputs})


def bi_encoder_cosines(encoder, batch, pooling):
    """Each part alone through transformers' own forward, pooled as sentence-transformers does."""
    made = []
    for row, first in enumerate(batch["first"].tolist()):
        length = int(batch["attention_mask"][row].sum())
        vectors = []
        for part in (slice(0, first), slice(first, length)):
            with torch.no_grad():
                states = encoder(input_ids=batch["input_ids"][row : row + 1, part])[0][0]
            vectors.append(states.mean(0) if pooling == "mean" else states[0])
        made.append(cosine_similarity(*vectors, dim=0))
    return torch.stack(made)


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_with_the_parts_shut_off_it_is_the_bi_encoder(family, pooling):
    batch = tiny.batch(40, 33, 9, first=6)
    network = warm(family, pooling=pooling, separate_layers=2)
    cosines = bi_encoder_cosines(network.encoder, batch, pooling)
    torch.testing.assert_close(scores(network, batch), ALPHA * cosines, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_shut_gate_is_a_separate_layer(family):
    batch = tiny.batch(30, 21)
    network = warm(family)
    network.gate.data.zero_()
    shut = warm(family, separate_layers=2)
    torch.testing.assert_close(scores(network, batch), scores(shut, batch))


def test_an_open_gate_is_the_attention_of_one_sequence():
    batch = tiny.batch(30, 30)
    network = warm()
    network.gate.data.fill_(1.0)
    index = torch.arange(30)
    with torch.no_grad():
        states = network.encoder(
            input_ids=batch["input_ids"],
            position_ids=torch.where(index < 4, index, index - 4)[None],
        )[0]
    cosines = cosine_similarity(states[:, :4].mean(1), states[:, 4:].mean(1))
    torch.testing.assert_close(scores(network, batch), ALPHA * cosines, atol=1e-4, rtol=1e-5)


def test_a_gate_opens_in_fifty_steps_and_never_falls_below_the_least():
    """With Adam's steps of .02: where the logarithm was the parameter they moved it by a tenth."""
    network = warm()
    steps = torch.optim.Adam([network.gate], lr=0.02)
    batch = tiny.batch(30, 21)
    for _ in range(50):
        (-network(**{name: batch[name] for name in network.inputs})[0]).backward()
        network.gate.grad = torch.tensor([-1.0, 1.0]) * network.gate.grad.abs()
        steps.step()
        steps.zero_grad()
        network.bound_gates()
    opened, shut = network.gate.tolist()
    assert opened > 0.2
    assert shut == pytest.approx(LEAST_GATE)
    assert network.gates == {"1": opened, "2": shut}


def test_each_layer_has_its_own_gate():
    batch = tiny.batch(30, 21)
    network = warm()
    at_start = scores(network, batch)
    moved = []
    for layer in range(2):
        network.gate.data.fill_(GATE)
        network.gate.data[layer] = 2.0
        moved.append(scores(network, batch))
    for one in moved:
        assert (one - at_start).abs().min() > 1e-3
    assert (moved[0] - moved[1]).abs().min() > 1e-3


def test_the_head_adds_what_it_reads_from_the_first_token():
    batch = tiny.batch(30, 21)
    network = warm()
    before = scores(network, batch)
    network.head.bias.data.fill_(3.0)
    torch.testing.assert_close(scores(network, batch), before + 3.0)
    network.head.weight.data.normal_()
    assert (scores(network, batch) - before - 3.0).abs().min() > 1e-3


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("strm", [False, True])
@pytest.mark.parametrize("separate", [1, 2])
def test_states_computed_apart_give_the_same_scores(family, strm, separate):
    batch = tiny.batch(40, 33, 9, first=6)
    network = warm(family, strm=strm, separate_layers=separate)
    words = batch["words"] if strm else None
    mask = batch["attention_mask"]
    with torch.no_grad():
        sides = [
            network.begin(
                batch["input_ids"][:, part], mask[:, part], words[:, part] if strm else None
            )
            for part in (slice(0, 6), slice(6, None))
        ]
        apart = network.finish(torch.cat(sides, 1), mask, batch["first"], words)
    torch.testing.assert_close(apart, scores(network, batch), atol=1e-4, rtol=1e-5)


def test_alpha_beta_and_head_learn():
    network = warm().train()
    batch = tiny.batch(30, 21)
    network(**{name: batch[name] for name in network.inputs}).sum().backward()
    for name in ("alpha", "gate", "head.weight", "head.bias"):
        gradient = network.get_parameter(name).grad
        assert gradient is not None
        assert gradient.abs().min() > 0, name


def test_more_separate_layers_than_layers_are_refused():
    with pytest.raises(CheckpointProblem, match=r"3 separate layers.*has 2"):
        warm(separate_layers=3)
