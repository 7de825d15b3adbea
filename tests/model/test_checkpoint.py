import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from secondlook.encode.settings import EncodeSettings
from secondlook.errors import CheckpointProblem
from secondlook.model import checkpoint
from secondlook.model.checkpoint import (
    locate,
    open_checkpoint,
    replacing,
    weight_files,
    write_settings,
)
from secondlook.model.settings import Lineage, RankerSettings, WarmSettings

BERT = {"model_type": "bert", "max_position_embeddings": 512, "id2label": {"0": "LABEL_0"}}


def folder_with(path, config=BERT, **files):
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


def settings(**encode):
    return RankerSettings(encode=EncodeSettings(**encode), lineage=Lineage(base="org/base"))


def test_settings_are_read_back_as_written(tmp_path):
    folder_with(tmp_path)
    written = settings(strm=True, max_length=180)
    write_settings(tmp_path, written)
    assert open_checkpoint(tmp_path).settings == written
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "secondlook.json"]


def test_reading_settings_needs_no_torch(tmp_path):
    folder_with(tmp_path)
    write_settings(tmp_path, settings())
    code = (
        "import sys; from secondlook.model.checkpoint import open_checkpoint;"
        f"open_checkpoint({str(tmp_path)!r});"
        "sys.exit(bool({'torch', 'transformers', 'safetensors'} & set(sys.modules)))"
    )
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=path).returncode == 0


def test_an_unknown_setting_is_refused_with_the_nearest_name(tmp_path):
    card = json.loads(settings().model_dump_json())
    folder_with(tmp_path, secondlook=card | {"lineag": {}})
    with pytest.raises(CheckpointProblem, match="did you mean 'lineage'"):
        open_checkpoint(tmp_path)


def test_warm_settings_and_the_warm_form_go_together():
    with pytest.raises(ValueError, match="the settings are those of the warm form"):
        RankerSettings(
            encode=EncodeSettings(), warm=WarmSettings(), lineage=Lineage(base="org/base")
        )


def test_more_tokens_than_positions_are_refused(tmp_path):
    folder_with(tmp_path)
    write_settings(tmp_path, settings(max_length=1024))
    with pytest.raises(CheckpointProblem, match=r"1024.*positions for 512"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("config", "files", "longest"),
    [
        (BERT, {}, 512),
        (BERT, {"tokenizer_config": {"model_max_length": 256}}, 256),
        (BERT, {"tokenizer_config": {"model_max_length": int(1e30)}}, 512),
        (BERT, {"sentence_bert_config": {"max_seq_length": 128}}, 128),
        (
            BERT,
            {
                "sentence_bert_config": {"max_seq_length": 300},
                "tokenizer_config": {"model_max_length": 256},
            },
            300,
        ),
        ({"model_type": "unheard-of"}, {"tokenizer_config": {"model_max_length": 10**30}}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, {}, 512),
        ({"model_type": "mpnet", "max_position_embeddings": 514}, {}, 512),
        ({"model_type": "modernbert", "max_position_embeddings": 8192}, {}, 8192),
        ({"model_type": "unheard-of"}, {}, 512),
    ],
)
def test_a_plain_cross_encoder_is_as_long_as_its_authors_said(tmp_path, config, files, longest):
    folder_with(tmp_path, config, **files)
    expected = EncodeSettings(max_length=longest, max_query_length=None)
    assert open_checkpoint(tmp_path).settings.encode == expected


IDENTITY = "torch.nn.modules.linear.Identity"
SIGMOID = "torch.nn.modules.activation.Sigmoid"
TANH = "torch.nn.modules.activation.Tanh"
SAVED_THERE = {
    "modules": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.Transformer"}],
}


def saved_there(**told):
    """The files that sentence-transformers writes for a CrossEncoder."""
    told = {"model_type": "CrossEncoder"} | told
    return SAVED_THERE | {"config_sentence_transformers": told}


@pytest.mark.parametrize(
    ("config", "files", "activation"),
    [
        (BERT, {}, "sigmoid"),
        (BERT | {"sentence_transformers": {"activation_fn": IDENTITY}}, {}, "identity"),
        (BERT | {"sbert_ce_default_activation_function": IDENTITY}, {}, "identity"),
        (BERT, saved_there(activation_fn=IDENTITY), "identity"),
        (BERT, saved_there(activation_fn=SIGMOID), "sigmoid"),
        (BERT, saved_there(activation_fn=TANH), "tanh"),
        (BERT | {"sentence_transformers": {"activation_fn": TANH}}, {}, "tanh"),
        (BERT | {"sentence_transformers": {"activation_fn": "mine.Curve"}}, {}, "sigmoid"),
        (BERT, saved_there(activation_fn=TANH, model_type="SentenceTransformer"), "sigmoid"),
        ({"model_type": "bert"}, {}, "identity"),
    ],
    ids=[
        *("default", "config", "before 4.0", "6.x", "6.x sigmoid", "6.x tanh", "tanh"),
        *("code of its own", "a bi-encoder", "two logits"),
    ],
)
def test_scores_are_shown_as_sentence_transformers_shows_them(tmp_path, config, files, activation):
    folder_with(tmp_path, config, **files)
    assert open_checkpoint(tmp_path).settings.activation == activation


def test_an_activation_that_is_not_known_is_refused(tmp_path):
    softplus = "torch.nn.modules.activation.Softplus"
    folder_with(tmp_path, BERT | {"sentence_transformers": {"activation_fn": softplus}})
    with pytest.raises(CheckpointProblem, match=r"Softplus, and Identity, Sigmoid, Tanh are known"):
        open_checkpoint(tmp_path)


def test_the_default_prompt_stands_before_queries_and_others_wait_to_be_named(tmp_path):
    prompts = {"query": "find: ", "other": "x"}
    folder_with(tmp_path / "a", BERT, **saved_there(prompts=prompts, default_prompt_name="query"))
    folder_with(tmp_path / "b", BERT, **saved_there(prompts=prompts, default_prompt_name=None))
    encode = open_checkpoint(tmp_path / "a").settings.encode
    assert (encode.query_prompt, encode.document_prompt) == ("find: ", "")
    assert open_checkpoint(tmp_path / "b").settings.encode.query_prompt == ""


@pytest.mark.parametrize(
    ("names", "segments"),
    [(["input_ids", "attention_mask"], False), (["input_ids", "token_type_ids"], True)],
)
def test_segments_are_sent_where_the_authors_send_them(tmp_path, names, segments):
    folder_with(tmp_path, BERT, tokenizer_config={"model_input_names": names})
    assert open_checkpoint(tmp_path).settings.encode.segments == segments


def test_a_score_that_is_made_by_an_unknown_module_is_refused_with_its_name(tmp_path):
    files = saved_there()
    other = {"idx": 1, "name": "1", "path": "1_LSTM", "type": "sentence_transformers.LSTM"}
    folder_with(tmp_path, BERT, **files | {"modules": [*files["modules"], other]})
    with pytest.raises(CheckpointProblem, match=r"made by LSTM; .*others are not dropped"):
        open_checkpoint(tmp_path)


def test_a_model_that_brings_its_own_code_is_refused(tmp_path):
    config = {"model_type": "evil", "auto_map": {"AutoModel": "modeling.Evil"}}
    folder_with(tmp_path, BERT | config)
    with pytest.raises(CheckpointProblem, match=r"auto_map.*never run"):
        open_checkpoint(tmp_path)


def test_pickled_weights_are_refused(tmp_path):
    folder_with(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointProblem, match=r"pytorch_model\.bin, a pickle.*never loaded"):
        weight_files(tmp_path)


def test_safetensors_beside_pickles_are_taken(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    save_file({"a": np.zeros(1)}, tmp_path / "model.safetensors")
    assert weight_files(tmp_path) == [tmp_path / "model.safetensors"]


def test_shards_are_found_by_their_index(tmp_path):
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-1.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    for name in shards.values():
        save_file({"a": np.zeros(1)}, tmp_path / name)
    assert [path.name for path in weight_files(tmp_path)] == [
        "model-1.safetensors",
        "model-2.safetensors",
    ]


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_broken_file_is_named(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointProblem, match=r"config\.json"):
        open_checkpoint(tmp_path)


def test_an_empty_folder_is_no_ranker(tmp_path):
    with pytest.raises(CheckpointProblem, match=r"no model.*config\.json"):
        open_checkpoint(tmp_path)


class TestReplacing:
    def test_the_new_folder_is_there_and_nothing_else(self, tmp_path):
        with replacing(tmp_path / "deep" / "ranker") as half:
            (half / "config.json").write_text("{}")
            assert not (tmp_path / "deep" / "ranker").exists()
        assert [p.name for p in (tmp_path / "deep").iterdir()] == ["ranker"]

    def test_an_older_checkpoint_is_replaced_whole(self, tmp_path):
        ranker = folder_with(tmp_path / "ranker", stale={})
        with replacing(ranker) as half:
            (half / "config.json").write_text('{"new": 1}')
        assert [p.name for p in ranker.iterdir()] == ["config.json"]
        assert [p.name for p in tmp_path.iterdir()] == ["ranker"]

    def test_an_interrupted_save_leaves_the_older_one_as_it_was(self, tmp_path):
        ranker = folder_with(tmp_path / "ranker")
        before = (ranker / "config.json").read_bytes()

        def interrupted():
            with replacing(ranker) as half:
                (half / "config.json").write_text("half of i")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert (ranker / "config.json").read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["ranker"]

    def test_a_failed_rename_puts_the_older_one_back(self, tmp_path, monkeypatch):
        ranker = folder_with(tmp_path / "ranker")
        rename = type(ranker).rename

        def fails_for_the_new(path, target):
            if path.name.endswith(".half"):
                raise OSError("disk full")
            return rename(path, target)

        monkeypatch.setattr(type(ranker), "rename", fails_for_the_new)
        with pytest.raises(OSError, match="disk full"), replacing(ranker) as half:
            (half / "config.json").write_text("{}")
        assert open_checkpoint(ranker).config == BERT
        assert [p.name for p in tmp_path.iterdir()] == ["ranker"]

    def test_killed_between_the_two_renames_it_says_how_to_go_back(self, tmp_path):
        folder_with(tmp_path / ".ranker.1234abcd.previous")
        with pytest.raises(CheckpointProblem, match=r"mv .*\.previous .*ranker"):
            open_checkpoint(tmp_path / "ranker")

    def test_a_folder_of_other_things_is_never_replaced(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("")
        with pytest.raises(CheckpointProblem, match="not replaced"), replacing(tmp_path):
            pass
        assert (tmp_path / "thesis.tex").exists()


class TestHub:
    def test_a_hub_id_is_found_in_the_local_cache_when_offline(self, tmp_path, monkeypatch):
        import huggingface_hub.constants

        store = tmp_path / "models--org--ranker"
        snapshot = store / "snapshots" / "0123abcd"
        snapshot.mkdir(parents=True)
        folder_with(snapshot)
        (store / "refs").mkdir()
        (store / "refs" / "main").write_text("0123abcd")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        opened = open_checkpoint("org/ranker")
        assert opened.folder == snapshot
        assert opened.settings.lineage.base == "org/ranker"

    def test_only_safe_files_are_fetched(self, tmp_path, monkeypatch):
        import huggingface_hub

        asked = {}

        def fake_download(repo, allow_patterns):
            asked[repo] = allow_patterns
            return str(tmp_path)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", fake_download)
        assert locate("org/ranker") == tmp_path
        assert asked == {"org/ranker": ["*.safetensors", "*.json", "*.txt", "*.jinja"]}

    def test_what_is_nowhere_is_an_error_that_says_what_to_do(self, tmp_path, monkeypatch):
        import huggingface_hub.constants

        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(CheckpointProblem, match=r"could not be fetched.*give the folder"):
            locate("org/nowhere")

    def test_a_path_is_never_taken_for_a_hub_id(self, tmp_path):
        with pytest.raises(CheckpointProblem, match="neither a folder nor a hub id"):
            locate(tmp_path / "missing")
        with pytest.raises(CheckpointProblem, match="neither a folder nor a hub id"):
            locate("./some/deep/missing")


def test_the_lineage_names_a_folder_without_where_it_lies(tmp_path):
    folder_with(tmp_path / "my-ranker")
    assert checkpoint.base_name(tmp_path / "my-ranker") == "my-ranker"
