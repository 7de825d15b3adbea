"""The encoder of a ranker as a graph, so that vectors are made fast and without torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from secondlook.errors import BackendProblem
from secondlook.model.checkpoint import open_checkpoint
from secondlook.score.backends import open_export
from secondlook.score.export import write_graph
from secondlook.score.export_folder import Export, fingerprint, replacing_export
from secondlook.score.vectors import VectorEncoder
from secondlook.types import Document

_FARTHEST = 1e-4
"""How far 1 - cosine of a vector may be from torch's."""
_TEXTS = ("", "the bogue, a sea bream, dives to 350 metres", "cape fear is a river mouth " * 40)


def can_export_encoder() -> bool:
    """Whether what makes and runs the graph is installed."""
    return all(find_spec(name) is not None for name in ("openvino", "onnx", "onnxscript", "torch"))


def export_encoder(folder: Path) -> Export:
    """Write the encoder's graph into the ranker's folder, for OpenVINO in fp32.

    It is kept only if its vectors are torch's; else raises BackendProblem.
    """
    from secondlook.model.onnx_graph import write_onnx
    from secondlook.score.torch_vectors import TorchVectors, vector_network

    checkpoint = open_checkpoint(folder)
    network = vector_network(folder)
    export = Export(checkpoint.folder, "openvino", "fp32", "encoder")
    documents = [Document("", text) for text in _TEXTS]
    with replacing_export(export, fingerprint(checkpoint)) as made, TemporaryDirectory() as scratch:
        graph = Path(scratch) / "encoder.onnx"
        write_onnx(network, graph)
        write_graph(graph, made)
        expected = VectorEncoder(checkpoint, TorchVectors(network, "cpu")).documents(documents)
        found = VectorEncoder(checkpoint, open_export(made, checkpoint)).documents(documents)
        cosines = np.sum(expected.rows * found.rows, axis=1)
        if not cosines.min() > 1 - _FARTHEST:
            raise BackendProblem(
                f"the encoder's graph gives vectors up to {1 - cosines.min():.4f} from torch's"
            )
    return export
