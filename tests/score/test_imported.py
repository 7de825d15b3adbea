"""Cross-encoders made elsewhere score here as sentence-transformers scores them."""

import numpy as np
import pytest
import torch
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer

import tiny
from layouts import LAYOUTS, NAMED, PAIRS, WITHOUT_SEGMENTS, modular
from layouts import classifier as folder
from parity import assert_scores_alike, change, pairs_of, raw, raw_there, trained_one_step
from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import read_tokenizer
from secondlook.model.network import new_joint
from secondlook.score.export import export_ranker
from secondlook.score.ranker import Ranker

T5 = {"model_input_names": WITHOUT_SEGMENTS, "eos_token": "[SEP]", "model_max_length": 64}
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch.jit.script.*:DeprecationWarning"  # DeBERTa's own
)


def slow_but(names, quick):
    """All of the names, of which CI takes the quick ones."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("layout", slow_but(LAYOUTS, NAMED))
def test_scores_are_those_of_sentence_transformers(peer, tmp_path, layout):
    path = LAYOUTS[layout](tmp_path / "plain")
    there = peer(path)
    assert_scores_alike(path, there, tmp_path)
    ours = peer(tmp_path / "ours")  # and it reads ours as its own
    np.testing.assert_allclose(raw_there(ours), raw_there(there), atol=1e-4)


def test_t5_reads_its_texts_with_nothing_before_the_first(peer, tmp_path):
    """Its score is read at the last token, and its tokenizer has no first one."""
    path = tiny.save(tiny.encoder_decoder("t5"), tmp_path / "t5", **T5)
    tokenizer = read_tokenizer(path)
    tokenizer.post_processor = TemplateProcessing(
        single="$A [SEP]", pair="$A [SEP] $B [SEP]", special_tokens=[("[SEP]", 3)]
    )
    tokenizer.save(str(path / "tokenizer.json"))
    ranker = assert_scores_alike(path, peer(path), tmp_path)
    [features] = ranker.encoder.encode(pairs_of([("sea", "deep sea")]))
    tokens = [tokenizer.id_to_token(token) for token in features.ids.tolist()]
    assert tokens == ["sea", "[SEP]", "deep", "sea", "[SEP]"]


@pytest.mark.parametrize("layout", slow_but(LAYOUTS, ["modular", "qwen3, causal"]))
def test_scores_are_alike_after_training(peer, tmp_path, layout):
    path = LAYOUTS[layout](tmp_path / "plain")
    before = raw(Ranker.load(path, device="cpu"))
    tuned = trained_one_step(path, tmp_path / "tuned")
    after = raw(Ranker.load(tuned, device="cpu"))
    assert abs(after - before).max() > 1e-2
    np.testing.assert_allclose(after, raw_there(peer(tuned)), atol=1e-4)


ENGINES = [f"{engine}: {layout}" for layout in LAYOUTS for engine in ("onnx", "openvino")]


@pytest.mark.parametrize("case", slow_but(ENGINES, ["openvino: qwen3, causal"]))
def test_exports_score_as_sentence_transformers_does(peer, tmp_path, case):
    engine, layout = case.split(": ")
    pytest.importorskip("onnxruntime" if engine == "onnx" else engine)
    path = LAYOUTS[layout](tmp_path / "plain")
    export_ranker(path, engine, "fp32")
    exported = raw(Ranker.load(path, backend=engine))
    np.testing.assert_allclose(exported, raw_there(peer(path)), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_exports_are_alike_after_training(peer, tmp_path, layout):
    tuned = trained_one_step(LAYOUTS[layout](tmp_path / "plain"), tmp_path / "tuned")
    expected = raw_there(peer(tuned))
    export_ranker(tuned, "openvino", "fp32")
    np.testing.assert_allclose(raw(Ranker.load(tuned, backend="openvino")), expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_segments_are_left_out_where_the_authors_leave_them_out(peer, tmp_path, kind):
    path = folder(tmp_path / "plain", kind, model_input_names=WITHOUT_SEGMENTS)
    assert_scores_alike(path, peer(path), tmp_path)
    with_segments = Ranker.load(folder(tmp_path / "with", kind), device="cpu")
    assert abs(raw(with_segments) - raw_there(peer(path))).max() > 1e-2


PROMPTS = {"web": "what river is ", "other": "x"}


@pytest.mark.parametrize("layout", ["bert", "qwen3, causal"])
def test_the_default_prompt_is_put_before_queries_here_and_there(peer, tmp_path, layout):
    plain = LAYOUTS[layout](tmp_path / "plain")
    there = peer(plain, prompts=PROMPTS, default_prompt_name="web")
    there.save_pretrained(str(tmp_path / "saved"))
    assert_scores_alike(tmp_path / "saved", there, tmp_path)
    ours = peer(tmp_path / "ours")  # and sentence-transformers reads the prompt from ours
    np.testing.assert_allclose(raw_there(ours), raw_there(there), atol=1e-4)
    assert abs(raw_there(peer(plain)) - raw_there(there)).max() > 1e-2


@pytest.mark.parametrize(
    ("layout", "activation"),
    [("bert", "Identity"), ("modular", "Sigmoid"), ("qwen3, causal", "Tanh")],
)
def test_the_authors_activation_is_kept_for_sentence_transformers(
    peer, tmp_path, layout, activation
):
    applied = getattr(torch.nn, activation)()
    there = peer(LAYOUTS[layout](tmp_path / "plain"), activation_fn=applied)
    there.save_pretrained(str(tmp_path / "saved"))
    ours = assert_scores_alike(tmp_path / "saved", there, tmp_path)
    assert ours.settings.activation == activation.lower()
    again = peer(tmp_path / "ours")
    np.testing.assert_allclose(again.predict(list(PAIRS)), there.predict(list(PAIRS)), atol=1e-4)


def test_an_unknown_activation_is_refused(peer, tmp_path):
    peer(folder(tmp_path / "plain"), activation_fn=torch.nn.Softplus()).save_pretrained(
        str(tmp_path / "saved")
    )
    with pytest.raises(
        CheckpointProblem, match=r"through torch\.nn\.modules\.activation\.Softplus"
    ):
        Ranker.load(tmp_path / "saved")


def test_texts_are_cut_where_sentence_transformers_file_says(peer, tmp_path):
    peer(folder(tmp_path / "plain")).save_pretrained(str(tmp_path / "saved"))
    config = tmp_path / "saved" / "sentence_bert_config.json"
    tiny.write_json(config, tiny.read_json(config) | {"max_seq_length": 20})
    there = peer(tmp_path / "saved")
    assert_scores_alike(tmp_path / "saved", there, tmp_path)
    assert abs(raw_there(there) - raw_there(peer(tmp_path / "plain"))).max() > 1e-2


def test_texts_are_made_lower_case_where_its_file_says(peer, tmp_path):
    peer(folder(tmp_path / "plain", "xlm-roberta")).save_pretrained(str(tmp_path / "saved"))
    config = tmp_path / "saved" / "sentence_bert_config.json"
    tiny.write_json(config, tiny.read_json(config) | {"do_lower_case": True})
    pairs = [("Tide of the Sea", "Deep SEA"), ("tide", "sea")]
    assert_scores_alike(tmp_path / "saved", peer(tmp_path / "saved"), tmp_path, pairs)


def write_tokenizer_files(where, normalizer, config):
    """BERT's normalizer in `tokenizer.json`, and beside it `tokenizer_config.json`."""
    file = where / "tokenizer.json"
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    normalizer = bert | {"strip_accents": None} | normalizer
    tiny.write_json(file, tiny.read_json(file) | {"normalizer": normalizer})
    tiny.write_json(where / "tokenizer_config.json", {"unk_token": "[UNK]"} | config)


@pytest.mark.parametrize("configured", [True, False, None])
@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("name", ["BertTokenizer", "PreTrainedTokenizerFast"])
def test_two_files_that_disagree_on_lower_case_are_read_as_transformers_does(
    tmp_path, name, saved, configured
):
    where = folder(tmp_path / "plain")
    said = {} if configured is None else {"do_lower_case": configured}
    write_tokenizer_files(where, {"lowercase": saved}, {"tokenizer_class": name} | said)
    there = AutoTokenizer.from_pretrained(where)
    text = "Tide of the SEA, Ébb"
    assert read_tokenizer(where).encode(text).ids == there(text)["input_ids"]


def test_a_ranker_of_ours_reads_as_it_was_trained(tmp_path):
    where = folder(tmp_path / "plain")
    write_tokenizer_files(where, {"lowercase": False}, {"tokenizer_class": "BertTokenizer"})
    first = read_tokenizer(where).encode("Tide").ids
    tuned = trained_one_step(where, tmp_path / "tuned")
    assert read_tokenizer(tuned).encode("Tide").ids == first
    assert AutoTokenizer.from_pretrained(tuned)("Tide")["input_ids"] == first
    (tuned / "tokenizer_config.json").unlink()
    assert read_tokenizer(tuned).encode("Tide").ids == first
    tiny.write_json(where / "tokenizer_config.json", {"do_lower_case": "yes"})
    with pytest.raises(CheckpointProblem, match=r"do_lower_case, .* are true or false"):
        read_tokenizer(where)


def test_a_cut_query_is_counted(tmp_path):
    here = Ranker.load(folder(tmp_path / "plain"), device="cpu")
    scored = here.scored(pairs_of())
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


@pytest.mark.parametrize(
    ("labels", "positive", "negative"),
    [
        (["contradiction", "entailment", "neutral"], 1, 0),
        (["entailment", "neutral", "contradiction"], 0, 2),
        (["entailment", "not_entailment"], 0, 1),
        (["irrelevant", "relevant"], 1, 0),
    ],
)
def test_of_several_logits_labels_say_which_two_make_the_score(
    peer, tmp_path, labels, positive, negative
):
    path = folder(tmp_path / "plain", logits=len(labels))
    config = tiny.read_json(path / "config.json")
    named = {str(index): label for index, label in enumerate(labels)}
    ids = {label: index for index, label in enumerate(labels)}
    tiny.write_json(path / "config.json", config | {"id2label": named, "label2id": ids})
    there = peer(path).predict(list(PAIRS), activation_fn=torch.nn.Identity())
    expected = there[:, positive] - there[:, negative]
    np.testing.assert_allclose(raw(Ranker.load(path, device="cpu")), expected, atol=1e-4)


def test_logits_whose_meaning_nobody_states_are_refused(tmp_path):
    for path in (folder(tmp_path / "plain", logits=4), modular(tmp_path / "m", logits=3)):
        with pytest.raises(CheckpointProblem, match=r"[34] logits, and which of them"):
            Ranker.load(path)


def test_two_logits_of_a_modular_one_become_their_difference(peer, tmp_path):
    path = modular(tmp_path / "plain", logits=2)
    assert_scores_alike(path, peer(path), tmp_path)


@pytest.mark.parametrize(
    ("file", "values", "refused"),
    [
        ("sentence_bert_config.json", {"config_kwargs": {"hidden_act": "relu"}}, "config_kwargs"),
        (
            "sentence_bert_config.json",
            {"processing_kwargs": {"text": {"stride": 3}}},
            "text.stride",
        ),
        ("tokenizer_config.json", {"truncation_side": "left"}, "at their beginning"),
        ("sentence_bert_config.json", {"processing_kwargs": [1]}, "cannot be understood"),
    ],
)
def test_what_cannot_be_honoured_is_refused(peer, tmp_path, file, values, refused):
    peer(folder(tmp_path / "plain")).save_pretrained(str(tmp_path / "saved"))
    change(tmp_path / "saved" / file, **values)
    with pytest.raises(CheckpointProblem, match=refused):
        Ranker.load(tmp_path / "saved")


@pytest.mark.parametrize("layout", ["bert", "qwen3, causal"])
def test_a_plain_model_that_names_code_loads_without_it(peer, tmp_path, layout):
    path = LAYOUTS[layout](tmp_path / "plain")
    expected = raw_there(peer(path))
    change(path / "config.json", auto_map={"AutoModel": "modeling.Evil"})
    (path / "modeling.py").write_text("raise SystemExit('run')")
    np.testing.assert_allclose(raw(Ranker.load(path, device="cpu")), expected, atol=1e-4)


REAL_PAIRS = [
    ("what is a bogue?", "The bogue (Boops boops) is a species of seabream."),
    ("which rivers of the east coast have tides, and why " * 12, "The Cape Fear river."),
    ("tide", "The tide of the river rises twice a day. " * 80),
    ("how high is the tide " * 90, "The tide of the river rises twice a day. " * 80),
    ("", ""),
    ("où est Zürich", "Zürich liegt am Zürichsee — 400\u00a0000 habitants. 東京 не там."),
]


@pytest.mark.real
def test_a_real_cross_encoder(peer, shared_weights, tmp_path):
    path = shared_weights / "ms-marco-minilm-l12"
    there = peer(path, model_kwargs={"dtype": torch.float32})  # its weights are stored in half
    assert_scores_alike(path, there, tmp_path, REAL_PAIRS)


@pytest.mark.real
@pytest.mark.slow
def test_a_real_cross_encoder_after_training_and_export(peer, shared_weights, tmp_path):
    tuned = trained_one_step(shared_weights / "ms-marco-minilm-l12", tmp_path / "tuned")
    expected = raw_there(peer(tuned), REAL_PAIRS)
    scores = raw(Ranker.load(tuned, device="cpu"), REAL_PAIRS)
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    export_ranker(tuned, "openvino", "fp32")
    exported = raw(Ranker.load(tuned, backend="openvino"), REAL_PAIRS)
    np.testing.assert_allclose(exported, expected, atol=1e-4)
