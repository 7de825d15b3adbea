from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import tiny
from secondlook.cli import app
from secondlook.model.network import new_warm, save_model
from secondlook.score.ranker import Ranker


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    parent = tmp_path_factory.mktemp("verb")
    save_model(new_warm(tiny.save(tiny.encoder(), parent / "base")), parent / "ranker")
    return parent / "ranker"


def test_a_ranker_is_exported_into_its_folder(ranker):
    result = CliRunner().invoke(app, ["export", str(ranker), "--to", "onnx", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    graph = ranker / "onnx" / "model.fp32.onnx"
    assert (told["graph"], told["bytes"]) == (str(graph), graph.stat().st_size)
    assert told["difference"] < 1e-3 < told["spread"]
    assert len(Ranker.load(ranker, backend="onnx").predict([("a", "b")])) == 1


def test_it_says_what_it_made(ranker):
    result = CliRunner().invoke(app, ["export", str(ranker), "--precision", "int8"])
    assert result.exit_code == 0, result.output
    assert "openvino/model.int8.xml: " in result.stdout
    assert "from torch" in result.stdout
