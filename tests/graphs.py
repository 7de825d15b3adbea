"""An ONNX graph that is quick to make, for tests of what runs exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from secondlook.model.checkpoint import open_checkpoint
from secondlook.score.export_folder import Export, fingerprint, replacing_export

if TYPE_CHECKING:
    from pathlib import Path


def sum_of_ids(folder: Path) -> Path:
    """Put an export into a ranker's folder whose logit is a hundredth of the sum of the ids."""
    pairs = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["pairs", "length"])
        for name in ("input_ids", "attention_mask")
    ]
    logits = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["pairs"])
    constants = [
        onnx.helper.make_tensor("axis", onnx.TensorProto.INT64, [1], [1]),
        onnx.helper.make_tensor("scale", onnx.TensorProto.FLOAT, [], [0.01]),
    ]
    nodes = [
        onnx.helper.make_node("Mul", ["input_ids", "attention_mask"], ["kept"]),
        onnx.helper.make_node("ReduceSum", ["kept", "axis"], ["sum"], keepdims=0),
        onnx.helper.make_node("Cast", ["sum"], ["float"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Mul", ["float", "scale"], ["logits"]),
    ]
    graph = onnx.helper.make_graph(nodes, "sum", pairs, [logits], constants)
    model = onnx.helper.make_model(
        graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 18)]
    )
    export = Export(folder, "onnx", "fp32")
    with replacing_export(export, fingerprint(open_checkpoint(folder))) as replaced:
        onnx.save(model, replaced.graph)
    return folder
