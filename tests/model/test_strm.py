import pytest
import torch
import transformers

import tiny
from secondlook.errors import CheckpointProblem
from secondlook.model.families import SHUT
from secondlook.model.joint import Joint
from secondlook.model.strm import visible
from secondlook.model.warm import Warm

#          1  2  3  bog ##ue 6  7  8
FIGURE = [
    [1, 1, 1, 0, 1, 1, 1, 1],
    [1, 1, 1, 0, 1, 1, 1, 1],
    [1, 1, 1, 0, 1, 1, 1, 1],
    [1, 1, 1, 1, 1, 1, 1, 1],
    [1, 1, 1, 1, 1, 1, 1, 1],
    [1, 1, 1, 0, 1, 1, 1, 1],
    [1, 1, 1, 0, 1, 1, 1, 1],
    [1, 1, 1, 0, 1, 1, 1, 1],
]
WORDS = torch.tensor([[0, 1, 2, 3, 3, 4, 5, 6]])


def scores(network, batch, **changes):
    network.eval()
    with torch.no_grad():
        return network(**{name: (batch | changes)[name] for name in network.inputs})


def test_figure_3_of_the_paper_cell_by_cell():
    mask = visible(torch.ones(1, 8), WORDS)
    assert mask.shape == (1, 1, 8, 8)
    assert torch.equal(mask[0, 0] == 0, torch.tensor(FIGURE, dtype=torch.bool))
    assert mask.unique().tolist() == [SHUT, 0]


def test_padding_is_never_attended_and_the_word_before_it_ends_there():
    words = torch.tensor([[0, 1, 1, 1, 1]])  # a collator that repeats the last word as padding
    mask = visible(torch.tensor([[1, 1, 1, 0, 0]]), words)
    allowed = mask[0, 0] == 0
    assert not allowed[:, 3:].any()
    assert allowed[:, 2].all()
    assert allowed[:, 1].tolist() == [False, True, True, True, True]


def test_without_words_only_padding_is_shut_out():
    mask = visible(torch.tensor([[1, 1, 0]]), None)
    assert mask.tolist() == [[[[0, 0, SHUT]]]]


def test_what_is_shut_out_is_exactly_nothing_and_never_nan():
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        logits = torch.tensor([50.0, 2 * SHUT - 50.0], dtype=kind)
        assert logits.softmax(0).tolist() == [1, 0]
        assert torch.full((3,), 2 * SHUT, dtype=kind).softmax(0).isfinite().all()


def layer_outputs(model, states, mask, layers):
    for layer in model.encoder.layer[:layers]:
        states = layer(states, mask)
    return states[0]


def test_a_piece_reaches_other_words_only_through_the_last_piece_of_its_word():
    model = tiny.encoder("bert")
    bog, ue = 3, 4
    others = [place for place in range(8) if place not in (bog, ue)]
    with torch.no_grad():
        mask = visible(torch.ones(1, 8), WORDS)
        states = model.embeddings(torch.arange(5, 13)[None])
        zeroed = states.clone()
        zeroed[0, bog] = 0
        plain, changed = (layer_outputs(model, s, mask, 1) for s in (states, zeroed))
        assert torch.equal(plain[others], changed[others])
        assert not torch.allclose(plain[ue], changed[ue], atol=1e-3)
        # One layer further it has reached them: and, "##ue" zeroed in between, it has not.
        further = [layer_outputs(model, s, mask, 2) for s in (states, zeroed)]
        assert not torch.allclose(further[0][others], further[1][others], atol=1e-3)
        plain[ue] = changed[ue] = 0
        second = model.encoder.layer[1]
        cut = [second(s[None], mask)[0][others] for s in (plain, changed)]
        assert torch.equal(*cut)


def test_without_strm_the_piece_reaches_other_words_at_once():
    model = tiny.encoder("bert")
    with torch.no_grad():
        states = model.embeddings(torch.arange(5, 13)[None])
        zeroed = states.clone()
        zeroed[0, 3] = 0
        mask = visible(torch.ones(1, 8), None)
        plain, changed = (layer_outputs(model, s, mask, 1) for s in (states, zeroed))
    assert not torch.allclose(plain[0], changed[0], atol=1e-3)


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
class TestInEveryFamily:
    @pytest.fixture
    def both(self, family, attention):
        """The joint and the warm network of the family, both with STRM."""
        if family == "mpnet" and attention == "sdpa":
            pytest.skip("transformers has eager attention only for MPNet")
        joint = Joint(tiny.classifier(family), strm=True)
        warm = Warm(tiny.encoder(family), strm=True, pooling="mean", separate_layers=0)
        joint.classifier.set_attn_implementation(attention)
        warm.encoder.set_attn_implementation(attention)
        return joint, warm

    def test_whole_words_score_as_without_strm(self, both):
        batch = tiny.batch(24, 17)
        whole = torch.arange(24).expand(2, -1)
        joint, warm = both
        without = (
            Joint(joint.classifier, strm=False),
            Warm(warm.encoder, strm=False, pooling="mean", separate_layers=0),
        )
        for network, plain in zip(both, without, strict=True):
            torch.testing.assert_close(
                scores(network, batch, words=whole), scores(plain, batch), atol=1e-6, rtol=1e-6
            )

    def test_split_words_score_otherwise(self, both):
        batch = tiny.batch(24, 17)
        whole = torch.arange(24).expand(2, -1)
        for network in both:
            split, not_split = scores(network, batch), scores(network, batch, words=whole)
            assert (split - not_split).abs().min() > 1e-4

    def test_padding_changes_no_score(self, both):
        batch = tiny.batch(24, 11)
        alone = {
            name: rows[1:] if name == "first" else rows[1:, :11] for name, rows in batch.items()
        }
        for network in both:
            torch.testing.assert_close(
                scores(network, batch)[1:], scores(network, alone), atol=1e-5, rtol=1e-5
            )


def test_eager_and_sdpa_agree():
    batch = tiny.batch(30, 21)
    for family in tiny.FAMILIES:
        joint = Joint(tiny.classifier(family), strm=True)
        made = []
        for attention in ("eager", "sdpa"):
            if family != "mpnet":
                joint.classifier.set_attn_implementation(attention)
            made.append(scores(joint, batch))
        torch.testing.assert_close(*made, atol=1e-5, rtol=1e-5)


def test_modernbert_keeps_its_sliding_window_under_strm():
    """With whole words the mask must not widen the window: local layers see 4 tokens each way."""
    model = tiny.classifier("modernbert")
    model.config.layer_types = ["sliding_attention"] * 2
    for layer in model.model.layers:
        layer.attention_type = "sliding_attention"
    batch = tiny.batch(40)
    whole = torch.arange(40)[None]
    plain = scores(Joint(model, strm=False), batch)
    torch.testing.assert_close(scores(Joint(model, strm=True), batch, words=whole), plain)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_a_family_that_cannot_take_it_is_refused_by_name():
    config = transformers.DebertaV2Config(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        vocab_size=50,
        num_labels=1,
    )
    model = transformers.AutoModelForSequenceClassification.from_config(config)
    with pytest.raises(CheckpointProblem, match=r"STRM.*'deberta-v2'.*bert, distilbert"):
        Joint(model, strm=True)
    assert Joint(model, strm=False).inputs[:2] == ("input_ids", "attention_mask")
