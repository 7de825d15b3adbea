"""The encoder of a ranker as a graph, so that vectors are made fast and without torch.

The layers of a ranker with some separate ones likewise, as two graphs.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import BackendProblem
from secondlook.model.checkpoint import open_checkpoint
from secondlook.score.backends import open_export
from secondlook.score.export import write_graph
from secondlook.score.export_folder import Export, fingerprint, replacing_export
from secondlook.score.state_scorer import StateScorer
from secondlook.score.states import StateEncoder, TextStates, refuse_without_states
from secondlook.score.vectors import VectorEncoder
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from secondlook.model.checkpoint import Checkpoint
    from secondlook.model.onnx_graph import Network
    from secondlook.score.text_encoder import PartBackend

_FARTHEST = 1e-4
"""How far 1 - cosine of a vector may be from torch's."""
_FARTHEST_SCORE = 0.01
"""How far a score may be from torch's; a document's states are rounded to 16 bits in between."""
_TEXTS = ("", "the bogue, a sea bream, dives to 350 metres", "cape fear is a river mouth " * 40)


def can_export_encoder() -> bool:
    """Whether what makes and runs the graph is installed."""
    return all(find_spec(name) is not None for name in ("openvino", "onnx", "onnxscript", "torch"))


def export_encoder(folder: Path) -> Export:
    """Write the encoder's graph into the ranker's folder, for OpenVINO in fp32.

    It is kept only if its vectors are torch's; else raises BackendProblem.
    """
    from secondlook.score.torch_vectors import TorchVectors, vector_network

    checkpoint = open_checkpoint(folder)
    network = vector_network(folder)
    export = Export(checkpoint.folder, "openvino", "fp32", "encoder")
    documents = [Document("", text) for text in _TEXTS]
    with _exporting(export, checkpoint, network) as made:
        expected = VectorEncoder(checkpoint, TorchVectors(network, "cpu")).documents(documents)
        found = VectorEncoder(checkpoint, open_export(made, checkpoint)).documents(documents)
        cosines = np.sum(expected.rows * found.rows, axis=1)
        if not cosines.min() > 1 - _FARTHEST:
            raise BackendProblem(
                f"the encoder's graph gives vectors up to {1 - cosines.min():.4f} from torch's"
            )
    return export


def export_layers(folder: Path) -> tuple[Export, Export]:
    """Write graphs of the separate layers and of those above, for OpenVINO in fp32.

    They are kept only if their scores are torch's; else raises BackendProblem.
    """
    from secondlook.score.torch_vectors import TorchVectors, state_networks

    checkpoint = open_checkpoint(folder)
    refuse_without_states(checkpoint)
    networks = state_networks(folder)
    lower, upper = (
        Export(checkpoint.folder, "openvino", "fp32", part) for part in ("lower", "upper")
    )
    with (
        _exporting(lower, checkpoint, networks[0]) as below,
        _exporting(upper, checkpoint, networks[1]) as above,
    ):
        torch_below, torch_above = (TorchVectors(network, "cpu") for network in networks)
        expected = _few_scores(checkpoint, torch_below, torch_above)
        graphs = open_export(below, checkpoint), open_export(above, checkpoint)
        farthest = float(np.abs(_few_scores(checkpoint, *graphs) - expected).max())
        if not farthest < _FARTHEST_SCORE:
            raise BackendProblem(
                f"the graphs of the layers give scores up to {farthest:.4f} from torch's"
            )
    return lower, upper


def _few_scores(
    checkpoint: Checkpoint, lower: PartBackend, upper: PartBackend
) -> NDArray[np.float32]:
    encoder = StateEncoder(checkpoint, lower)
    pairs = [(Query("", _TEXTS[1]), Document(text, "")) for text in _TEXTS]
    return StateScorer(encoder, upper, _Made(encoder)).score(pairs)


class _Made:
    """States of documents whose ids are their texts, made when they are read."""

    def __init__(self, encoder: StateEncoder) -> None:
        self._encoder = encoder
        self.ranker = Path()

    def read(self, doc_ids: Sequence[str]) -> list[TextStates]:
        return self._encoder.documents([Document("", text) for text in doc_ids])


@contextmanager
def _exporting(export: Export, checkpoint: Checkpoint, network: Network) -> Iterator[Export]:
    """A graph of the network elsewhere, which takes the export's place if the block ends well."""
    from secondlook.model.onnx_graph import write_onnx

    with replacing_export(export, fingerprint(checkpoint)) as made, TemporaryDirectory() as scratch:
        graph = Path(scratch) / made.graph.with_suffix(".onnx").name
        write_onnx(network, graph)
        write_graph(graph, made)
        yield made
