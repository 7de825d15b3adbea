import json

import pytest
from typer.testing import CliRunner

import tiny
from secondlook.cli import app
from secondlook.errors import CheckpointProblem
from secondlook.score.ranker import Ranker


@pytest.fixture
def base(tmp_path):
    """A bi-encoder's folder as sentence-transformers leaves it."""
    folder = tiny.save(tiny.encoder(), tmp_path / "bi-encoder")
    (folder / "1_Pooling").mkdir()
    for name, content in {
        "modules.json": [
            {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
        "1_Pooling/config.json": {"pooling_mode_cls_token": True},
        "config_sentence_transformers.json": {"prompts": {"query": "query: "}},
    }.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["warm", *map(str, arguments)], catch_exceptions=False)


def test_it_makes_a_ranker_at_once(base, tmp_path):
    done = run(base, "-o", tmp_path / "ranker", "--separate-layers", 1)
    assert done.exit_code == 0
    assert "begins as bi-encoder, cls pooling, 64 tokens, prompts 'query: ' and ''" in done.output
    ranker = Ranker.load(tmp_path / "ranker", device="cpu")
    assert len(ranker.rank("cape fear", ["the sea", "a river"])) == 2
    assert ranker.settings.warm.model_dump() == {"pooling": "cls", "separate_layers": 1}
    assert ranker.settings.lineage.base == "bi-encoder"


def test_prompts_can_be_given_where_the_base_has_none(base, tmp_path):
    run(base, "-o", tmp_path / "ranker", "--document-prompt", "passage: ")
    encode = Ranker.load(tmp_path / "ranker", device="cpu").settings.encode
    assert (encode.query_prompt, encode.document_prompt) == ("query: ", "passage: ")


def test_a_ranker_that_is_there_is_replaced_only_if_asked(base, tmp_path):
    card = tmp_path / "ranker" / "secondlook.json"
    run(base, "-o", tmp_path / "ranker")
    made = card.read_text()
    with pytest.raises(CheckpointProblem, match="there already; to overwrite it, give --replace"):
        run(base, "-o", tmp_path / "ranker", "--document-prompt", "passage: ")
    assert card.read_text() == made
    run(base, "-o", tmp_path / "ranker", "--document-prompt", "passage: ", "--replace")
    assert json.loads(card.read_text())["encode"]["document_prompt"] == "passage: "


def test_an_empty_folder_is_filled(base, tmp_path):
    (tmp_path / "ranker").mkdir()
    run(base, "-o", tmp_path / "ranker")
    assert (tmp_path / "ranker" / "secondlook.json").is_file()


def test_a_base_that_is_nowhere_is_said_so(tmp_path):
    with pytest.raises(CheckpointProblem, match="neither a folder nor a hub id"):
        run(tmp_path / "nowhere", "-o", tmp_path / "ranker")
    assert not (tmp_path / "ranker").exists()
