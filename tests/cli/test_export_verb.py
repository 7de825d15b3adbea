from __future__ import annotations

import json

import pytest

import tiny
from command_line import in_process
from secondlook.model.network import new_warm, save_model
from secondlook.score.ranker import Ranker


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    parent = tmp_path_factory.mktemp("verb")
    save_model(new_warm(tiny.save(tiny.encoder(), parent / "base")), parent / "ranker")
    return parent / "ranker"


def test_a_ranker_is_exported_into_its_folder(ranker):
    told = json.loads(in_process("export", ranker, "--to", "onnx", "--json"))
    graph = ranker / "onnx" / "model.fp32.onnx"
    assert (told["graph"], told["bytes"]) == (str(graph), graph.stat().st_size)
    assert told["difference"] < 1e-3 < told["spread"]
    assert len(Ranker.load(ranker, backend="onnx").predict([("a", "b")])) == 1


def test_it_says_what_it_made(ranker):
    said = in_process("export", ranker, "--precision", "int8")
    assert "openvino/model.int8.xml: " in said
    assert "from torch" in said
