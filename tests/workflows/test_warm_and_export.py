"""A re-ranker from a bi-encoder, and its export, as a program calls them."""

from __future__ import annotations

import json

import pytest

import tiny
from secondlook import Ranker
from secondlook.errors import BackendProblem, WrongArgument
from secondlook.workflows.export import export
from secondlook.workflows.warm import warm


@pytest.fixture
def base(tmp_path):
    return tiny.save(tiny.encoder(), tmp_path / "base")


def test_a_bi_encoder_becomes_a_ranker_that_is_exported(base, capsys):
    seen = []

    def note(doing, done, total):
        seen.append(doing)

    given = {"window": 8, "document_prompt": "passage: "}
    made = warm(base, str(base.parent / "ranker"), **given, progress=note)
    assert made.settings == Ranker.load(made.ranker, device="cpu").settings
    windows = made.settings.encode.windows
    assert (windows.length, windows.stride) == (8, 4)
    assert "begins as base" in made.summary()
    assert json.loads(json.dumps(made.to_dict()))["encode"]["document_prompt"] == "passage: "
    exported = export(str(made.ranker), backend="onnx", progress=note)
    assert str(exported.export.graph) in exported.summary()
    assert json.loads(json.dumps(exported.to_dict()))["bytes"] == exported.size
    assert seen == ["loading the base model", "exporting to onnx"]
    assert capsys.readouterr().out == ""


def test_a_stride_without_windows_is_refused(base, tmp_path):
    with pytest.raises(WrongArgument, match=r"`stride` .* needs `window`"):
        warm(base, tmp_path / "ranker", stride=50)
    assert not (tmp_path / "ranker").exists()


def test_an_export_that_cannot_be_names_no_option(base):
    with pytest.raises(BackendProblem, match="export to openvino") as problem:
        export(base, backend="onnx", precision="bf16")
    assert "--" not in str(problem.value)
