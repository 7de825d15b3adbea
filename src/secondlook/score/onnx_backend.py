"""ONNX Runtime: runs an exported graph on every platform, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnxruntime

from secondlook.score.graph_backend import GraphBackend

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.model.checkpoint import Checkpoint
    from secondlook.score.export_folder import Export


class OnnxBackend(GraphBackend):
    """Scores encoded pairs with ONNX Runtime on the CPU."""

    def __init__(
        self, export: Export, checkpoint: Checkpoint, *, one_at_a_time: bool = False
    ) -> None:
        super().__init__(export, checkpoint, one_at_a_time=one_at_a_time)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.batch_threads
        options.enable_mem_pattern = False  # it keeps a plan of the memory for every shape seen
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            export.graph, options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [one.name for one in self._session.get_inputs()]

    def run(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """The logits of one batch."""
        logits: NDArray[np.float32]
        (logits,) = self._session.run(None, {name: batch[name] for name in self._inputs})
        return logits
