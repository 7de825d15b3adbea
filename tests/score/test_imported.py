"""Cross-encoders made elsewhere score here as sentence-transformers scores them."""

import numpy as np
import pytest
import torch
import transformers

import tiny
from secondlook.errors import CheckpointProblem
from secondlook.model.network import load_model, new_joint, save_model
from secondlook.score.ranker import Ranker
from secondlook.types import Document, Query

LONG = "what is the tide of the cape fear river, in deep sea? "
PAIRS = (
    ("what is bogue", "the tide of the sea. bogue, a fish!"),
    (LONG * 2, "a fish"),  # the query is cut, and by far more than 64 tokens of it fit
    ("tide", LONG * 9),
    (LONG * 9, LONG * 7),
    (LONG * 7, LONG * 9),
    ("", ""),
    ("", "the tide"),
    ("tide", ""),
    ("où est Zürich", "Zürich liegt am Zürichsee — 400\u00a0000 habitants. 東京 не там."),
)
LENGTH = 120
WITHOUT_SEGMENTS = ["input_ids", "attention_mask"]


def deberta():
    return transformers.DebertaV2Config(
        **tiny._SHAPE,
        type_vocab_size=0,
        relative_attention=True,
        position_buckets=16,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        pooler_hidden_size=32,
    )


def network(kind, logits=1):
    torch.manual_seed(3)
    made = deberta() if kind == "deberta-v2" else tiny.config(kind)
    made.initializer_range, made.num_labels = 0.3, logits
    made.max_position_embeddings = LENGTH + 2
    return transformers.AutoModelForSequenceClassification.from_config(made).eval()


def folder(path, kind="bert", logits=1, **tokenizer_config):
    model = network(kind, logits)
    tiny.save(model, path, **{"model_max_length": LENGTH} | tokenizer_config)
    if kind == "xlm-roberta":
        tiny.sentence_pieces().save(str(path / "tokenizer.json"))
        names = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>"}
        tiny.write_json(
            path / "tokenizer_config.json",
            {f"{name}_token": token for name, token in names.items()}
            | {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_input_names": WITHOUT_SEGMENTS,
                "model_max_length": LENGTH,
            },
        )
    return path


@pytest.fixture
def peer():
    made = pytest.importorskip("sentence_transformers").CrossEncoder

    def load(path, **options):
        return made(str(path), device="cpu", **options)

    return load


def raw(ranker, pairs=PAIRS):
    return ranker.score([(Query("", query), Document("", text)) for query, text in pairs])


def raw_there(there, pairs=PAIRS):
    scores = there.predict(list(pairs), activation_fn=torch.nn.Identity())
    return scores[:, 1] - scores[:, 0] if scores.ndim == 2 else scores


def assert_scores_alike(path, there, tmp_path, pairs=PAIRS):
    """As it comes, and after it went through a checkpoint of ours."""
    here = Ranker.load(path, device="cpu")
    expected = raw_there(there, pairs)
    assert np.ptp(expected) > 1e-2
    np.testing.assert_allclose(raw(here, pairs), expected, atol=1e-4)
    save_model(load_model(path), tmp_path / "ours")
    again = Ranker.load(tmp_path / "ours", device="cpu")
    np.testing.assert_allclose(raw(again, pairs), expected, atol=1e-4)
    return again


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # DeBERTa's own
@pytest.mark.parametrize(
    ("kind", "logits"),
    [
        *(("bert", 1), ("bert", 2), ("xlm-roberta", 1), ("modernbert", 1), ("deberta-v2", 1)),
        *(("electra", 1), ("distilbert", 1)),
    ],
)
def test_raw_scores_are_those_of_sentence_transformers(peer, tmp_path, kind, logits):
    path = folder(tmp_path / "plain", kind, logits)
    assert_scores_alike(path, peer(path), tmp_path)


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_segments_are_left_out_where_the_authors_leave_them_out(peer, tmp_path, kind):
    path = folder(tmp_path / "plain", kind, model_input_names=WITHOUT_SEGMENTS)
    assert_scores_alike(path, peer(path), tmp_path)
    with_segments = Ranker.load(folder(tmp_path / "with", kind), device="cpu")
    assert abs(raw(with_segments) - raw_there(peer(path))).max() > 1e-2


def test_the_default_prompt_is_put_before_queries_here_and_there(peer, tmp_path):
    prompts = {"web": "what river is ", "other": "x"}
    there = peer(folder(tmp_path / "plain"), prompts=prompts, default_prompt_name="web")
    there.save_pretrained(str(tmp_path / "saved"))
    assert_scores_alike(tmp_path / "saved", there, tmp_path)
    ours = peer(tmp_path / "ours")  # and sentence-transformers reads the prompt from ours
    np.testing.assert_allclose(raw_there(ours), raw_there(there), atol=1e-4)
    without = peer(tmp_path / "plain")
    assert abs(raw_there(without) - raw_there(there)).max() > 1e-2


@pytest.mark.parametrize("activation", ["Identity", "Sigmoid", "Tanh"])
def test_the_authors_activation_is_kept_for_sentence_transformers(peer, tmp_path, activation):
    there = peer(folder(tmp_path / "plain"), activation_fn=getattr(torch.nn, activation)())
    there.save_pretrained(str(tmp_path / "saved"))
    ours = assert_scores_alike(tmp_path / "saved", there, tmp_path)
    assert ours.settings.activation == activation.lower()
    again = peer(tmp_path / "ours")
    np.testing.assert_allclose(again.predict(list(PAIRS)), there.predict(list(PAIRS)), atol=1e-4)


def test_texts_are_cut_where_sentence_transformers_file_says(peer, tmp_path):
    peer(folder(tmp_path / "plain")).save_pretrained(str(tmp_path / "saved"))
    config = tmp_path / "saved" / "sentence_bert_config.json"
    tiny.write_json(config, tiny.read_json(config) | {"max_seq_length": 20})
    there = peer(tmp_path / "saved")
    assert_scores_alike(tmp_path / "saved", there, tmp_path)
    assert abs(raw_there(there) - raw_there(peer(tmp_path / "plain"))).max() > 1e-2


def test_a_cut_query_is_counted(tmp_path):
    here = Ranker.load(folder(tmp_path / "plain"), device="cpu")
    scored = here.scored([(Query("", query), Document("", text)) for query, text in PAIRS])
    assert scored.cut_query[[0, 1, 2, 5]].tolist() == [0, 0, 0, 0]
    assert scored.cut_query[3] > scored.cut[3] > 0
    assert scored.cut[4] > scored.cut_query[4] > 0


def test_a_ranker_of_ours_keeps_its_limit_for_queries(tmp_path):
    base = tiny.save(tiny.encoder(), tmp_path / "base")
    assert new_joint(base).settings.encode.max_query_length == 64
    trained = folder(tmp_path / "trained")
    assert new_joint(trained).settings.encode.max_query_length is None
    limited = new_joint(trained, {"max_query_length": 64}).settings.encode
    assert limited.max_query_length == 64


def test_a_trained_head_of_further_modules_is_neither_dropped_nor_guessed(tmp_path):
    there = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.base.modules")
    pooling = there.sentence_transformer.modules.Pooling(32, "cls")
    dense = modules.Dense(32, 1, module_output_name="scores")
    encoder = modules.Transformer(str(tiny.save(tiny.encoder(), tmp_path / "encoder")))
    made = there.CrossEncoder(modules=[encoder, pooling, dense], device="cpu")
    made.save_pretrained(str(tmp_path / "saved"))
    for load in (Ranker.load, new_joint):
        with pytest.raises(CheckpointProblem, match=r"\(Pooling, Dense\).*neither.*dropped"):
            load(tmp_path / "saved")


@pytest.mark.real
def test_a_real_cross_encoder(peer, shared_weights, tmp_path):
    path = shared_weights / "ms-marco-minilm-l12"
    pairs = [
        ("what is a bogue?", "The bogue (Boops boops) is a species of seabream."),
        ("which rivers of the east coast have tides, and why " * 12, "The Cape Fear river."),
        ("tide", "The tide of the river rises twice a day. " * 80),
        ("how high is the tide " * 90, "The tide of the river rises twice a day. " * 80),
        ("", ""),
        ("où est Zürich", "Zürich liegt am Zürichsee — 400\u00a0000 habitants. 東京 не там."),
    ]
    there = peer(path, model_kwargs={"dtype": torch.float32})  # its weights are stored in half
    assert_scores_alike(path, there, tmp_path, pairs)
