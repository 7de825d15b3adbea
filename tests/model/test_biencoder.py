import json

import pytest

from secondlook.errors import CheckpointProblem
from secondlook.model.biencoder import read_biencoder

TRANSFORMER = {"path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}


def folder_with(path, pooling, prompts=None, modules=(TRANSFORMER, POOLING, NORMALIZE)):
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return path


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": "cls", "include_prompt": True}, "cls"),
    ],
)
def test_pooling_is_read_in_the_old_form_and_the_new(tmp_path, config, pooling):
    assert read_biencoder(folder_with(tmp_path, config)).pooling == pooling


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"pooling_mode_max_tokens": True}, "pools by pooling_mode_max_tokens"),
        ({"pooling_mode": ["mean", "max"]}, "pools by mean, max"),
        ({"pooling_mode": "mean", "include_prompt": False}, "prompt out of the pooling"),
    ],
)
def test_pooling_that_cannot_be_taken_over_is_refused(tmp_path, config, problem):
    with pytest.raises(CheckpointProblem, match=problem):
        read_biencoder(folder_with(tmp_path, config))


def test_a_dense_layer_on_top_is_refused(tmp_path):
    dense = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    folder = folder_with(tmp_path, {"pooling_mode": "mean"}, modules=(TRANSFORMER, POOLING, dense))
    with pytest.raises(CheckpointProblem, match="Dense module"):
        read_biencoder(folder)


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_prompts_are_found_under_the_names_sentence_transformers_knows(tmp_path, name):
    prompts = {"query": "query: ", name: "passage: ", "clustering": "cluster: "}
    read = read_biencoder(folder_with(tmp_path, {"pooling_mode": "mean"}, prompts))
    assert (read.query_prompt, read.document_prompt) == ("query: ", "passage: ")


@pytest.mark.parametrize(
    ("name", "prompts", "expected"),
    [
        ("intfloat/e5-small", None, ("query: ", "passage: ")),
        ("intfloat/multilingual-e5-base", None, ("query: ", "passage: ")),
        ("e5-large-v2", {"query": "", "document": ""}, ("query: ", "passage: ")),
        ("e5-small", {"query": "find: "}, ("find: ", "")),
        ("intfloat/multilingual-e5-large-instruct", None, ("", "")),
        ("thenlper/gte-small", None, ("", "")),
    ],
)
def test_e5_has_the_prompts_of_its_model_card_where_its_files_name_none(
    tmp_path, name, prompts, expected
):
    read = read_biencoder(folder_with(tmp_path, {"pooling_mode": "mean"}, prompts), name)
    assert (read.query_prompt, read.document_prompt) == expected


def test_a_bare_encoder_pools_by_the_mean_and_has_no_prompts(tmp_path):
    read = read_biencoder(tmp_path)
    assert (read.pooling, read.query_prompt, read.document_prompt) == ("mean", "", "")
    assert read.files == {}


def test_its_files_travel_with_it(tmp_path):
    folder = folder_with(tmp_path, {"pooling_mode": "mean"})
    files = read_biencoder(folder).files
    assert set(files) == {
        "modules.json",
        "config_sentence_transformers.json",
        "1_Pooling/config.json",
    }
    assert all((folder / name).read_bytes() == content for name, content in files.items())


@pytest.mark.parametrize("path", ["../victim", "/etc", "1_Pooling/..", 1])
def test_a_module_outside_of_the_folder_is_refused(tmp_path, path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "config.json").write_text('{"pooling_mode": "mean"}')
    (tmp_path / "model").mkdir()
    elsewhere = POOLING | {"path": path}
    folder = folder_with(tmp_path / "model", {}, modules=(TRANSFORMER, elsewhere))
    with pytest.raises(CheckpointProblem, match="no folder of the model"):
        read_biencoder(folder)


def test_a_pooling_module_without_a_folder_is_read_from_the_models_own(tmp_path):
    folder = folder_with(tmp_path, {}, modules=(TRANSFORMER, POOLING | {"path": ""}))
    (folder / "config.json").write_text('{"pooling_mode": "cls"}')
    read = read_biencoder(folder)
    assert read.pooling == "cls"
    assert "config.json" in read.files


@pytest.mark.parametrize("text", ["{not json", "{}x", '["Pooling"]', '[{"path": "1_Pooling"}]'])
def test_a_damaged_list_of_modules_is_named(tmp_path, text):
    folder = folder_with(tmp_path, {"pooling_mode": "mean"})
    (folder / "modules.json").write_text(text)
    with pytest.raises(CheckpointProblem, match=r"modules\.json is no"):
        read_biencoder(folder)
