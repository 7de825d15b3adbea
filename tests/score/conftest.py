"""Tiny rankers with every export, made once for all tests of a session."""

from __future__ import annotations

import shutil
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import tiny
from secondlook.model import onnx_graph as graphs
from secondlook.model.network import Model, new_joint, new_warm, save_model
from secondlook.score.export import export_ranker
from secondlook.score.export_folder import FASTEST_FIRST

if TYPE_CHECKING:
    from pathlib import Path


def save_tiny(form: str, folder: Path) -> Path:
    """A ranker with STRM and random weights, none of them where it begins."""
    base = tiny.save(tiny.encoder(), folder.with_name(f"{folder.name}-base"))
    encode: dict[str, Any] = {"strm": True, "max_length": 60}
    if form == "joint":
        made = new_joint(base, encode)
        settings = made.settings.model_copy(update={"trained": True})
        made = Model(made.network, made.tokenizer, settings)
    else:
        made = new_warm(base, separate_layers=1, encode=encode)
        made.network.head.weight.data.normal_(std=0.3)
        made.network.gate.data.uniform_(0.1, 2.0)
    save_model(made, folder)
    return folder


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """The form of a ranker → its folder with all the exports there are.

    torch traces each network once for all of them, which is what takes the time.
    """
    write_onnx = graphs.write_onnx

    @cache
    def make(form: str) -> Path:
        parent = tmp_path_factory.mktemp(form)
        folder, graph = save_tiny(form, parent / "ranker"), parent / "graph.onnx"

        def write_once(network, path):
            if not graph.exists():
                write_onnx(network, graph)
            shutil.copy(graph, path)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graphs, "write_onnx", write_once)
            for engine, precision in FASTEST_FIRST:
                export_ranker(folder, engine, precision)
        return folder

    return make


@pytest.fixture
def peer() -> Any:
    """sentence-transformers' CrossEncoder, on the CPU."""
    made = pytest.importorskip("sentence_transformers").CrossEncoder

    def load(path: Path, **options: Any) -> Any:
        return made(str(path), device="cpu", **options)

    return load
