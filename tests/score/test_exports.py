from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tiny
from secondlook.errors import BackendProblem, CheckpointProblem, MissingExtra
from secondlook.model import onnx_graph
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.settings import PlattCalibration
from secondlook.score import export as making
from secondlook.score import export_folder
from secondlook.score.counting import CountingRanker
from secondlook.score.export import export_ranker
from secondlook.score.export_folder import FASTEST_FIRST, Export, choose, replacing_export
from secondlook.score.graph_backend import GraphBackend
from secondlook.score.onnx_backend import OnnxBackend
from secondlook.score.openvino_backend import OpenVinoBackend
from secondlook.score.ranker import Ranker
from secondlook.score.torch_backend import TorchBackend
from secondlook.types import Document, Query

PAIRS = [("where is the bogue", text) for text in ("in the deep sea", "bogus", "a river " * 20)]


@pytest.fixture
def ranker(exported, tmp_path):
    """A copy with all exports, to change."""
    return shutil.copytree(exported("warm"), tmp_path / "ranker")


def keep_only(folder, *kept):
    for kind in FASTEST_FIRST:
        if kind not in kept:
            Export(folder, *kind).card.unlink()


def with_other_weights(folder, name="model.safetensors"):
    weights = load_file(folder / name)
    first = sorted(weights)[0]
    save_file(weights | {first: np.asarray(weights[first] + 0.5, np.float32)}, folder / name)


@pytest.mark.parametrize("form", ["joint", "warm"])
@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_a_float32_graph_gives_the_logits_of_torch(exported, form, engine):
    expected = Ranker.load(exported(form), backend="torch").predict(PAIRS, raw_scores=True)
    ranker = Ranker.load(exported(form), backend=engine, precision="fp32")
    scores = ranker.predict(PAIRS, raw_scores=True)
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_of_several_exports_the_fastest_runs(ranker):
    for kind in FASTEST_FIRST:
        chosen = choose(ranker, None, None)
        assert (chosen.engine, chosen.precision) == kind
        chosen.card.unlink()
    assert choose(ranker, None, None) is None


def test_what_is_asked_for_runs(ranker):
    assert isinstance(Ranker.load(ranker, backend="onnx").backend, OnnxBackend)
    assert isinstance(Ranker.load(ranker, precision="bf16").backend, OpenVinoBackend)
    assert isinstance(Ranker.load(ranker, backend="torch").backend, TorchBackend)
    assert isinstance(Ranker.load(ranker, device="cpu").backend, TorchBackend)


def test_a_job_is_known_by_the_back_end_that_scores_not_by_the_one_asked_for(ranker):
    made_of = []
    for engine, precision in (*FASTEST_FIRST, ("torch", "fp32")):
        chosen = CountingRanker(str(ranker), "auto", "auto").made_of
        assert chosen["backend"] == f"{engine} {precision}"
        assert chosen == CountingRanker(str(ranker), engine, precision).made_of
        assert chosen not in made_of
        made_of.append(chosen)
        if engine != "torch":
            Export(ranker, engine, precision).card.unlink()


def test_without_exports_torch_runs_in_float32(ranker):
    keep_only(ranker)
    assert Ranker.load(ranker).backend.precision == "fp32"
    with pytest.raises(BackendProblem, match="--to openvino --precision int8"):
        Ranker.load(ranker, precision="int8")


def test_an_engine_without_an_export_is_refused_with_the_command_that_makes_it(ranker):
    keep_only(ranker, ("openvino", "bf16"))
    with pytest.raises(BackendProblem, match=r"secondlook export .*ranker --to onnx"):
        Ranker.load(ranker, backend="onnx")
    with pytest.raises(BackendProblem, match=r"at int8.*--to openvino --precision int8"):
        Ranker.load(ranker, backend="openvino", precision="int8")


def test_an_engine_that_is_not_installed_is_named_or_passed_over(ranker, monkeypatch):
    found = export_folder.find_spec
    monkeypatch.setattr(
        export_folder, "find_spec", lambda name: None if name == "openvino" else found(name)
    )
    assert choose(ranker, None, None).engine == "onnx"
    with pytest.raises(MissingExtra, match=r"secondlook\[openvino\]"):
        Ranker.load(ranker, backend="openvino")


def test_a_device_is_for_torch(ranker):
    with pytest.raises(BackendProblem, match="openvino runs on the CPU"):
        Ranker.load(ranker, backend="openvino", device="cuda")


@pytest.mark.parametrize("name", ["model.safetensors", "secondlook.safetensors"])
def test_an_export_of_other_weights_is_refused_with_the_command_that_mends_it(ranker, name):
    with_other_weights(ranker, name)
    with pytest.raises(CheckpointProblem, match=r"other weights.*secondlook export .*--precision"):
        Ranker.load(ranker)
    assert len(Ranker.load(ranker, backend="torch").predict(PAIRS)) == 3


def test_an_export_of_other_settings_is_refused(ranker):
    settings = open_checkpoint(ranker).settings
    encode = settings.encode.model_copy(update={"strm": False})
    write_settings(ranker, settings.model_copy(update={"encode": encode}))
    with pytest.raises(CheckpointProblem, match="other weights or settings"):
        Ranker.load(ranker)


def test_calibrating_leaves_the_export_as_good_as_it_was(ranker):
    settings = open_checkpoint(ranker).settings
    calibration = PlattCalibration(slope=0.1, intercept=0.0)
    write_settings(ranker, settings.model_copy(update={"calibration": calibration}))
    scores = Ranker.load(ranker).predict(PAIRS)
    assert ((scores > 0) & (scores < 1)).all()


def test_a_folder_without_weights_can_be_served(ranker):
    expected = Ranker.load(ranker).predict(PAIRS, raw_scores=True)
    for weights in ranker.glob("*.safetensors"):
        weights.unlink()
    scores = Ranker.load(ranker).predict(PAIRS, raw_scores=True)
    np.testing.assert_array_equal(scores, expected)


def test_an_export_runs_without_torch(ranker):
    code = (
        "import sys; from secondlook import Ranker;"
        f"print(Ranker.load({str(ranker)!r}).rank('the sea', ['a fish', 'the sea']));"
        "sys.exit(bool({'torch', 'transformers', 'nncf', 'onnx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_broken_card_is_named(ranker):
    Export(ranker, "openvino", "bf16").card.write_text('{"fingerprnt": ""}')
    with pytest.raises(CheckpointProblem, match=r"bf16\.json.*did you mean 'fingerprint'"):
        Ranker.load(ranker)


def test_an_interrupted_export_leaves_the_older_one_as_it_was(ranker):
    export = Export(ranker, "onnx", "fp32")
    before = {path: path.read_bytes() for path in ranker.rglob("*") if path.is_file()}

    def is_interrupted(path):
        path.write_bytes(b"half of i")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replacing_export(export, "new") as made:
        is_interrupted(made.graph)
    assert {path: path.read_bytes() for path in ranker.rglob("*") if path.is_file()} == before


def test_an_export_replaces_the_older_one_and_leaves_nothing_else(ranker):
    names = sorted(path.name for path in ranker.rglob("*"))
    export = Export(ranker, "openvino", "int8")
    with replacing_export(export, "sha256:new") as made:
        for path in made.files:
            path.write_bytes(b"new")
    assert sorted(path.name for path in ranker.rglob("*")) == names
    assert [path.read_bytes() for path in export.files] == [b"new", b"new"]
    assert json.loads(export.card.read_text())["fingerprint"] == "sha256:new"


def test_onnx_runtime_has_no_bf16(ranker):
    with pytest.raises(BackendProblem, match="no bf16 on CPUs; export to openvino"):
        export_ranker(ranker, "onnx", "bf16")


@pytest.mark.parametrize(("precision", "wrong"), [("fp32", 0.01), ("int8", 5.0)])
def test_a_graph_that_scores_otherwise_than_torch_is_not_kept(
    ranker, monkeypatch, precision, wrong
):
    class Wrong:
        def __init__(self, right):
            self._right = right

        def logits(self, features):
            return self._right.logits(features) + np.float32(wrong)

    traced = Export(ranker, "onnx", "fp32").graph.read_bytes()  # tracing takes the time
    monkeypatch.setattr(onnx_graph, "write_onnx", lambda _, path: path.write_bytes(traced))
    opened = making.open_export
    monkeypatch.setattr(making, "open_export", lambda *given: Wrong(opened(*given)))
    export = Export(ranker, "onnx", precision)
    before = export.graph.read_bytes()
    with pytest.raises(BackendProblem, match="from torch's, so it was not kept"):
        export_ranker(ranker, "onnx", precision)
    assert export.graph.read_bytes() == before


def test_weights_too_large_for_the_file_of_a_graph_stand_beside_it(ranker, monkeypatch):
    monkeypatch.setattr("torch.onnx._internal.exporter._onnx_program._LARGE_MODEL_THRESHOLD", 1000)
    export = export_ranker(ranker, "onnx", "fp32").export
    assert [path.name for path in export.files] == ["model.fp32.onnx", "model.fp32.onnx.data"]
    expected = Ranker.load(ranker, backend="torch").predict(PAIRS, raw_scores=True)
    scores = Ranker.load(ranker, backend="onnx", precision="fp32").predict(PAIRS, raw_scores=True)
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    with replacing_export(export, "sha256:smaller") as made:
        made.graph.write_text("a graph with its weights")
    assert [path.name for path in export.files] == ["model.fp32.onnx"]


def test_an_untrained_head_is_not_exported(tmp_path):
    folder = tiny.save(tiny.encoder(), tmp_path / "base")
    with pytest.raises(CheckpointProblem, match="no trained head"):
        export_ranker(folder, "onnx", "fp32")


class TestBatches:
    """What the engines are given, whichever they are."""

    class Recorder(GraphBackend):
        def __init__(self, checkpoint, workers):
            export = Export(checkpoint.folder, "onnx", "fp32")
            super().__init__(export, checkpoint, token_budget=256)
            self.workers = workers
            self.shapes = []

        def run(self, batch):
            self.shapes.append(batch["input_ids"].shape)
            return batch["attention_mask"].sum(1).astype(np.float32)

    def features(self, exported, *words, form="warm"):
        ranker = Ranker.load(exported(form), backend="torch")
        texts = ["a " * count for count in words]
        return ranker.encoder.encode([(Query("", "the sea"), Document("", t)) for t in texts])

    @pytest.fixture
    def checkpoint(self, exported):
        return open_checkpoint(exported("warm"))

    @pytest.mark.parametrize(("form", "longest"), [("joint", 60), ("warm", 64)])
    def test_lengths_are_rounded_up_but_never_beyond_the_limit(self, exported, form, longest):
        checkpoint = open_checkpoint(exported(form))
        backend = self.Recorder(checkpoint, workers=1)
        assert checkpoint.settings.encode.max_length == 60  # in the warm form, of each text
        features = self.features(exported, 1, 3, 20, 100, form=form)
        np.testing.assert_array_equal(backend.logits(features), [len(one) for one in features])
        lengths = {length for _, length in backend.shapes}
        assert lengths <= {*range(8, longest, 8), longest}
        assert max(lengths) == longest

    @pytest.mark.parametrize("engine", ["torch", "onnx", "openvino"])
    def test_two_long_texts_are_read_beside_short_ones(self, exported, engine):
        long, short = "the sea and the river " * 40, "sea"
        pairs = [(Query("", q), Document("", d)) for q in (long, short) for d in (long, short)]
        folder = exported("warm")
        alone = [Ranker.load(folder, backend="torch").score([pair])[0] for pair in pairs]
        scores = Ranker.load(folder, backend=engine, precision="fp32").score(pairs)
        np.testing.assert_allclose(scores, alone, atol=1e-4)

    def test_no_batch_is_beyond_the_budget(self, exported, checkpoint):
        backend = self.Recorder(checkpoint, workers=1)
        backend.logits(self.features(exported, *range(1, 50)))
        assert max(pairs * length for pairs, length in backend.shapes) <= 256

    def test_few_pairs_are_shared_out_among_the_workers(self, exported, checkpoint):
        backend = self.Recorder(checkpoint, workers=4)
        backend.logits(self.features(exported, *[5] * 12))
        assert [pairs for pairs, _ in backend.shapes] == [3, 3, 3, 3]


def test_a_ranker_may_be_named_from_where_one_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranker").mkdir()
    with replacing_export(Export(Path("ranker"), "onnx", "fp32"), "sha256:0") as made:
        for path in made.files:
            path.write_text("a graph")
    assert Export(tmp_path / "ranker", "onnx", "fp32").graph.read_text() == "a graph"


def test_a_process_that_has_a_share_of_the_cores_is_not_bound_to_the_first(ranker, monkeypatch):
    """Several of them, as on Ray, would all take the same core."""
    monkeypatch.setattr("secondlook.score.openvino_backend.usable_cores", lambda: 2)
    for told, bound in (("1", False), ("2", True)):
        monkeypatch.setattr("secondlook.score.graph_backend.threads", lambda told=told: int(told))
        backend = Ranker.load(ranker, backend="openvino").backend
        assert backend.compiled.get_property("ENABLE_CPU_PINNING") is bound
