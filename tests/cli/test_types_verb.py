import json

import pytest
from typer.testing import CliRunner

from command_line import in_process
from secondlook.cli import app


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "labelled.tsv"
    rows = [("HUM", f"who was {name}") for name in ("ada", "bo", "cy")]
    rows += [("LOC", f"where is {name}") for name in ("ada", "bo", "cy")]
    lines = ["coarse\tquestion", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(*arguments, **more):
    result = CliRunner().invoke(
        app, ["types", *map(str, arguments)], catch_exceptions=False, **more
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_a_classifier_is_trained_measured_and_used(labelled, tmp_path):
    out = tmp_path / "made" / "types.safetensors"
    assert "trained on 6 queries" in run("train", labelled, "-o", out)
    assert "accuracy 1.000 of 6 queries" in run("eval", out, labelled)
    assert json.loads(run("eval", out, labelled, "--json")) == {
        "file": str(labelled),
        "queries": 6,
        "accuracy": 1.0,
        "recall": {"location": 1.0, "person": 1.0},
    }
    assert run("predict", out, "who was dee") == "person\twho was dee\n"
    assert json.loads(run("predict", out, "--json", input="where is ada\n")) == {
        "query": "where is ada",
        "type": "location",
    }


def test_nothing_is_left_where_a_classifier_cannot_be_written(tmp_path):
    labelled, folder = tmp_path / "labelled.tsv", tmp_path / "folder"
    labelled.write_text("type\tquery\nNUMERIC\thow many\nPERSON\twho\n", encoding="utf-8")
    folder.mkdir()
    in_process("types", "train", labelled, "-o", folder, fails=True)
    assert sorted(tmp_path.iterdir()) == [folder, labelled]
