"""Makes a graph of a checkpoint and puts it into its folder, for the engines that need no torch."""

from __future__ import annotations

import logging
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.encode.encoder import Encoder
from secondlook.errors import BackendProblem, MissingExtra
from secondlook.model.checkpoint import open_checkpoint, read_tokenizer
from secondlook.score.backends import open_export
from secondlook.score.export_folder import (
    Export,
    fingerprint,
    replacing_export,
    weights_beside,
)
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from secondlook.encode.features import Features
    from secondlook.model.checkpoint import Checkpoint
    from secondlook.model.network import Model
    from secondlook.score.export_folder import Engine, Precision

_TOLERANCE = 1e-3
"""How far a float32 graph's logits may be from torch's."""
_ROUNDED = 0.1
"""How far others may be, of what logits spread over: an engine that computes nonsense shows."""
_BLOCK, _IN_FLOAT32 = 32, 1
"""ONNX Runtime's int8: how many weights share a scale, and the level at which it rounds weights
only, not activations."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An export that was made, and how it compares with torch on a few pairs."""

    export: Export
    difference: float
    """The largest difference between two logits of one pair."""
    spread: float
    """How far the logits of the pairs lie apart."""

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(path.stat().st_size for path in self.export.files)

    def summary(self) -> str:
        """Where it is, how large, and how near to torch."""
        return (
            f"{self.export.graph}: {self.size / 2**20:.0f} MiB; on a few pairs, whose logits "
            f"spread over {self.spread:.2f}, at most {self.difference:.2g} from torch"
        )

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "graph": str(self.export.graph),
            "bytes": self.size,
            "difference": self.difference,
            "spread": self.spread,
        }


def export_ranker(source: str | Path, engine: Engine, precision: Precision) -> Exported:
    """Export a ranker into its own folder; what was there for this engine and precision goes.

    fp32 gives torch's logits to 1e-3, or raises BackendProblem. bf16 stores weights in half the
    size and computes in bf16, which ONNX Runtime does not have on CPUs. int8 stores weights in 8
    bits and computes in float32: activations in 8 bits are faster, but lose the order (decision
    0062), and with one scale for a batch a pair's score depends on its neighbours.
    """
    if (engine, precision) == ("onnx", "bf16"):
        raise BackendProblem(
            "ONNX Runtime has no bf16 on CPUs; export to openvino, or in fp32 or int8"
        )
    from secondlook.model.network import load_model
    from secondlook.model.onnx_graph import write_onnx

    checkpoint = open_checkpoint(source)
    made_from = fingerprint(checkpoint)
    model = load_model(checkpoint.folder)
    export = Export(checkpoint.folder, engine, precision)
    with replacing_export(export, made_from) as made, TemporaryDirectory() as scratch:
        graph = Path(scratch) / made.graph.with_suffix(".onnx").name
        write_onnx(model.network, graph)
        write_graph(graph, made)
        difference, spread = _compare(model, made, checkpoint)
    return Exported(export, difference, spread)


def write_graph(graph: Path, made: Export) -> None:
    """Make an export of an ONNX graph in float32."""
    (_write_openvino if made.engine == "openvino" else _write_onnx)(graph, made)


def _write_openvino(graph: Path, made: Export) -> None:
    try:
        import openvino
    except ImportError as error:
        raise MissingExtra("openvino", "an export for OpenVINO") from error
    # not convert_model, which does the same and reports its use to Intel over the network
    model = openvino.Core().read_model(graph)
    if made.precision == "int8":
        model = _compress(model)
    openvino.save_model(model, made.graph, compress_to_fp16=made.precision != "fp32")


def _compress(model: Any) -> Any:  # noqa: ANN401 - openvino.Model, which has no types
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type] # as above: NNCF
    try:
        import nncf
    except ImportError as error:
        raise MissingExtra("export", "an export in int8 for OpenVINO") from error
    nncf.set_log_level(logging.ERROR)
    # Layers that narrow, feed-forward's second, have a few weights a hundred times the others'.
    spared = [op.get_friendly_name() for op in model.get_ops() if _narrows(op)]
    with redirect_stdout(sys.stderr):  # its progress bar
        return nncf.compress_weights(
            model,
            mode=nncf.CompressWeightsMode.INT8_ASYM,
            ignored_scope=nncf.IgnoredScope(names=spared),
        )


def _narrows(op: Any) -> bool:  # noqa: ANN401 - openvino.Node
    """Whether it multiplies by a matrix of weights with fewer columns than rows."""
    if op.get_type_name() != "MatMul" or op.input_value(1).get_node().get_type_name() != "Constant":
        return False
    rows, columns = op.input_value(1).get_shape()
    if op.get_attributes()["transpose_b"]:
        rows, columns = columns, rows
    return bool(columns < rows)


def _write_onnx(graph: Path, made: Export) -> None:
    if made.precision == "fp32":
        for path in (graph, weights_beside(graph)):  # the graph names the other file
            if path.is_file():
                copyfile(path, made.graph.with_name(path.name))
        return
    try:
        import onnx
        from onnxruntime.quantization import matmul_nbits_quantizer
    except ImportError as error:
        raise MissingExtra("export", "an export in int8 for ONNX Runtime") from error
    matmul_nbits_quantizer.logger.setLevel(logging.ERROR)
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        onnx.load(graph),
        bits=8,
        block_size=_BLOCK,
        is_symmetric=False,
        accuracy_level=_IN_FLOAT32,
    )
    quantizer.process()
    onnx.save(quantizer.model.model, made.graph)


def _compare(model: Model, made: Export, checkpoint: Checkpoint) -> tuple[float, float]:
    """The largest difference from torch on a few pairs, and how far these lie apart."""
    from secondlook.score.torch_backend import TorchBackend

    features = _features(checkpoint)
    expected = TorchBackend(model.network, device="cpu").logits(features)
    logits = open_export(made, checkpoint).logits(features)
    difference, spread = float(np.abs(logits - expected).max()), float(np.ptp(expected))
    allowed = _TOLERANCE if made.precision == "fp32" else _ROUNDED * max(1.0, spread)
    if not difference < allowed:  # nor NaN
        raise BackendProblem(
            f"the graph for {made.engine} gives logits up to {difference:.4f} from torch's, so it "
            "was not kept; score this ranker with the torch back end, and tell us which base it has"
        )
    return difference, spread


def _features(checkpoint: Checkpoint) -> list[Features]:
    """Pairs of very different lengths, from a made-up question and answer."""
    question = Query("", "how deep does the bogue dive", "numeric")
    sentence = "The bogue, a sea bream, dives to 350 metres; at night it rises to the surface. "
    texts = [
        "",
        sentence,
        sentence * 4,
        sentence * 60,
        "bogus " * 12,
        "Cape Fear is a river mouth.",
    ]
    encoder = Encoder(read_tokenizer(checkpoint.folder), checkpoint.settings.encode)
    return encoder.encode([(question, Document("", text)) for text in texts])
