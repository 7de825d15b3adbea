"""A checkpoint's folder from anywhere: refused in words, before transformers reads it."""

import json

import pytest

import tiny
from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import open_checkpoint, read_config, read_tokenizer, weight_files
from secondlook.model.network import load_model


@pytest.fixture
def folder(tmp_path):
    return tiny.save(tiny.classifier(), tmp_path / "model")


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "name", ["weights.bin", "../other/model.safetensors", "/etc/x.safetensors", ".safetensors", 7]
)
def test_only_safetensors_of_the_folder_itself_are_weights(folder, name):
    index = {"weight_map": {"classifier.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointProblem, match="files of the same folder"):
        weight_files(folder)


@pytest.mark.parametrize("index", [{}, {"weight_map": None}, {"weight_map": []}])
def test_an_index_of_nothing_is_named(folder, index):
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointProblem, match='no "weight_map"'):
        load_model(folder)


@pytest.mark.parametrize(
    "config",
    [
        {"_attn_implementation": "org/kernel"},
        {"attn_implementation": "kernels-community/flash-attn2:flash"},
        {"_attn_implementation": {"": "org/kernel"}},
        {"text_config": {"_attn_implementation": "org/kernel"}},
        {"_attn_implementation": ["eager"]},
    ],
)
def test_attention_from_the_hub_is_refused(folder, config):
    change(folder / "config.json", **config)
    with pytest.raises(CheckpointProblem, match="code from the hub"):
        load_model(folder)


@pytest.mark.parametrize("name", ["eager", "sdpa", None])
def test_attention_that_transformers_has_is_taken(folder, name):
    change(folder / "config.json", _attn_implementation=name)
    assert load_model(folder).settings.form == "joint"


@pytest.mark.parametrize(
    "config",
    [
        {"max_position_embeddings": "many"},
        {"pad_token_id": [0]},
        {"model_type": 3},
        {"id2label": 5},
        {"sentence_transformers": "yes"},
    ],
)
def test_a_config_of_other_types_is_named(folder, config):
    change(folder / "config.json", **config)
    with pytest.raises(CheckpointProblem, match=next(iter(config))):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    "config", [{"hidden_size": "wide"}, {"num_attention_heads": 0}, {"hidden_act": "nonsense"}]
)
def test_what_only_transformers_reads_is_a_message_too(folder, config):
    change(folder / "config.json", **config)
    with pytest.raises(CheckpointProblem, match="cannot be loaded"):
        load_model(folder)


@pytest.mark.parametrize("text", ["[]", "null", "{", "[" * 100_000])
def test_a_config_that_is_no_object_is_named(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointProblem, match=r"config\.json"):
        read_config(folder)


@pytest.mark.parametrize("text", ["", "{}", '{"model": {"type": "None"}}', "[1]"])
def test_a_damaged_tokenizer_is_named(folder, text):
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(CheckpointProblem, match=r"tokenizer\.json is damaged"):
        read_tokenizer(folder)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"encode": 7}', '{"version": 99}'])
def test_a_damaged_card_is_named(folder, text):
    (folder / "secondlook.json").write_text(text)
    with pytest.raises(CheckpointProblem, match=r"secondlook\.json"):
        open_checkpoint(folder)
