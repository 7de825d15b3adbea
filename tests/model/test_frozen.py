"""The frozen form: its output layer by hand, and that only what is above the encoder learns."""

import math
from dataclasses import replace

import pytest
import torch

import tiny
from secondlook.errors import BackendProblem, CheckpointProblem
from secondlook.model.frozen import Attention, Frozen, TopSignals
from secondlook.model.network import load_model, new_frozen, new_joint, new_warm, save_model
from secondlook.model.onnx_graph import write_onnx
from secondlook.model.settings import FrozenSettings
from secondlook.score.ranker import Ranker
from secondlook.types import Document, Query

SMALL = FrozenSettings(hidden=8, mlp=4)


@pytest.fixture
def base(tmp_path):
    return tiny.save(tiny.encoder(), tmp_path / "base")


@pytest.fixture
def frozen(base):
    torch.manual_seed(0)
    return new_frozen(new_joint(base), SMALL)


def layer(top):
    """Two features; w = (1, 0), W = [[1, 2], [0, 1]], and an MLP that weighs the signals 1, 2, …"""
    made = TopSignals(width=2, top=top, hidden=1)
    with torch.no_grad():
        made.weigh.weight.copy_(torch.tensor([[1.0, 0.0]]))
        made.match.weight.copy_(torch.tensor([[1.0, 2.0], [0.0, 1.0]]).T)  # uᵀW as Wᵀu
        made.mlp[0].weight.copy_(torch.arange(1.0, top + 1)[None])
        made.mlp[0].bias.zero_()
        made.mlp[2].weight.fill_(3.0)
        made.mlp[2].bias.fill_(0.5)
    return made.eval()


QUERY = torch.tensor([[[0.0, 1.0], [math.log(3), 0.0], [9.0, 9.0]]])
QUERY_MASK = torch.tensor([[True, True, False]])
DOCUMENT = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [7.0, 7.0]]])
DOCUMENT_MASK = torch.tensor([[True, True, True, False]])


def test_in_training_every_layer_has_dropout():
    torch.manual_seed(1)
    head = layer(3).train()
    for share, several in ((0.0, False), (0.4, True)):
        head.drop.p = share
        given = (QUERY, QUERY_MASK, DOCUMENT, DOCUMENT_MASK)
        scores = {head(*given).detach().item() for _ in range(8)}
        assert (len(scores) > 1) is several
    attention = Attention(2, 4).train()
    seen = [attention(DOCUMENT, QUERY, QUERY, QUERY_MASK) for _ in range(8)]
    assert any(not torch.equal(seen[0], other) for other in seen[1:])
    attention.eval()
    assert torch.equal(*(attention(DOCUMENT, QUERY, QUERY, QUERY_MASK) for _ in range(2)))


def by_hand():
    """The softmax over the three real document tokens."""
    # β = (1, 3)/4, since exp(w·u) is 1 and 3
    u = (0.75 * math.log(3), 0.25)
    matched = (u[0], 2 * u[0] + u[1])  # uᵀW
    logits = [0.0, matched[0], matched[1]]  # with the document's unit vectors
    total = sum(map(math.exp, logits))
    return sorted((math.exp(one) / total for one in logits), reverse=True)


def test_the_output_layer_is_that_of_the_paper():
    s = by_hand()
    signals = layer(2).signals(QUERY, QUERY_MASK, DOCUMENT, DOCUMENT_MASK)
    assert signals[0].tolist() == pytest.approx(s[:2], rel=1e-5)
    score = layer(2)(QUERY, QUERY_MASK, DOCUMENT, DOCUMENT_MASK)
    assert score.tolist() == pytest.approx([3 * (s[0] + 2 * s[1]) + 0.5], rel=1e-5)


def test_a_short_document_is_filled_up_with_zeros():
    s = by_hand()
    signals = layer(6).signals(QUERY, QUERY_MASK, DOCUMENT, DOCUMENT_MASK)
    assert signals[0].tolist() == pytest.approx([*s, 0, 0, 0], rel=1e-5)


def test_gradients_of_the_output_layer_are_the_finite_differences():
    torch.manual_seed(1)
    made = TopSignals(3, 4, 5).double().eval()
    query, document = torch.randn(2, 3, 3).double(), torch.randn(2, 6, 3).double()
    query_mask, document_mask = torch.ones(2, 3).bool(), torch.ones(2, 6).bool()
    query_mask[1, 2] = document_mask[0, 4:] = False
    query.requires_grad = document.requires_grad = True
    assert torch.autograd.gradcheck(
        lambda q, d: made(q, query_mask, d, document_mask), (query, document)
    )


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_features_are_the_encoder_s_own_states(tmp_path, family):
    base = tiny.save(tiny.encoder(family), tmp_path / family)
    network = new_frozen(new_warm(base), SMALL).network
    ids = torch.randint(5, tiny.SIZE, (2, 7))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    features = network.features(ids, mask, None)
    with torch.no_grad():
        theirs = network.encoder(ids * mask + network.pad_id * (1 - mask), mask)
    assert features.shape == (2, 7, 3, 32)
    torch.testing.assert_close(
        features[0, :, -1], theirs.last_hidden_state[0], atol=1e-5, rtol=1e-4
    )
    real = theirs.last_hidden_state[1, :5]
    torch.testing.assert_close(features[1, :5, -1], real, atol=1e-5, rtol=1e-4)


def test_a_score_does_not_depend_on_what_stands_beside_it(frozen):
    batch = tiny.batch(9, 14, 6)
    inputs = {name: batch[name] for name in frozen.network.inputs}
    with torch.no_grad():
        together = frozen.network(**inputs)
        alone = [
            frozen.network(
                **{
                    name: rows[at : at + 1, :length] if rows.dim() > 1 else rows[at : at + 1]
                    for name, rows in inputs.items()
                }
            )
            for at, length in enumerate((9, 14, 6))
        ]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-4)
    assert together.unique().numel() == 3


def test_the_encoder_does_not_learn_and_does_not_drop(frozen):
    network = frozen.network.train()
    batch = tiny.batch(9, 14)
    network(**{name: batch[name] for name in network.inputs}).sum().backward()
    assert all(weight.grad is None for weight in network.encoder.parameters())
    own = {n: w for n, w in network.named_parameters() if not n.startswith("encoder.")}
    assert all(weight.grad is not None for weight in own.values())
    assert {"mix", "scale"} <= own.keys()
    assert not network.encoder.training


@pytest.mark.parametrize("strm", [False, True])
def test_a_saved_ranker_scores_as_before(tmp_path, base, strm):
    model = new_frozen(new_joint(base, {"strm": strm}), SMALL)
    save_model(model, tmp_path / "ranker")
    with pytest.raises(CheckpointProblem, match="no trained head"):
        load_model(tmp_path / "ranker")
    again = load_model(tmp_path / "ranker", untrained_head=True)
    assert isinstance(again.network, Frozen)
    assert again.settings == model.settings
    batch = tiny.batch(9, 14)
    inputs = {name: batch[name] for name in model.network.inputs}
    with torch.no_grad():
        assert torch.equal(again.network(**inputs), model.network(**inputs))
    ranker = Ranker.load(tmp_path / "ranker", untrained_head=True)
    pairs = [(Query("q", "what is the sea"), Document("d", text)) for text in ("deep sea", "fish")]
    scores = ranker.score(pairs)
    assert scores[0] != scores[1]
    assert "frozen* form" in (tmp_path / "ranker" / "README.md").read_text()


def test_it_has_no_graph(tmp_path, frozen):
    with pytest.raises(BackendProblem, match="torch back end"):
        write_onnx(frozen.network, tmp_path / "model.onnx")


def test_it_is_not_frozen_twice(frozen):
    with pytest.raises(CheckpointProblem, match="already"):
        new_frozen(frozen, SMALL)


def test_it_calls_itself_frozen_and_one_that_called_itself_warm_still_loads(frozen, tmp_path):
    pairs = [(Query("q", "cape fear"), Document("d", "the river of cape fear"))]
    trained = frozen.settings.model_copy(update={"trained": True})
    save_model(replace(frozen, settings=trained), tmp_path / "ranker")
    card = tiny.read_json(tmp_path / "ranker" / "secondlook.json")
    assert card["encode"]["form"] == "frozen"
    scores = Ranker.load(tmp_path / "ranker", device="cpu").score(pairs)
    card["encode"]["form"] = "warm"
    tiny.write_json(tmp_path / "ranker" / "secondlook.json", card)
    old = Ranker.load(tmp_path / "ranker", device="cpu")
    assert old.settings.encode.form == old.settings.form == "frozen"
    assert old.score(pairs).tolist() == scores.tolist()


@pytest.mark.parametrize("form", [new_joint, new_warm])
def test_every_form_has_its_encoder_by_one_name(form, base):
    network = form(base).network
    assert new_frozen(form(base), SMALL).network.encoder.config == network.encoder.config
    assert (
        network.encoder.get_input_embeddings().weight.shape[0] == network.encoder.config.vocab_size
    )
