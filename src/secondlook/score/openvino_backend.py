"""OpenVINO: the fastest on most CPUs, without torch."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino

from secondlook.score.cores import usable_cores
from secondlook.score.graph_backend import GraphBackend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from secondlook.model.checkpoint import Checkpoint
    from secondlook.score.export_folder import Export


class OpenVinoBackend(GraphBackend):
    """Scores encoded pairs with OpenVINO on the CPU.

    A bf16 export computes in bf16 where the CPU has it, and in float32 elsewhere.
    """

    def __init__(
        self, export: Export, checkpoint: Checkpoint, *, one_at_a_time: bool = False
    ) -> None:
        super().__init__(export, checkpoint, one_at_a_time=one_at_a_time)
        cores = self.workers * self.batch_threads
        core = openvino.Core()
        bf16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        self.compiled = core.compile_model(
            export.graph,
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": "bf16" if self.precision == "bf16" and bf16 else "f32",
                "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,  # int8 is for weights only
                "INFERENCE_NUM_THREADS": cores,
                "NUM_STREAMS": self.workers,
                # Pinned to the first cores: processes that share a machine (Ray's workers) would
                # all take the same ones.
                "ENABLE_CPU_PINNING": cores >= (usable_cores() or 1),
            },
        )
        self._inputs = [one.get_any_name() for one in self.compiled.inputs]
        self._idle: SimpleQueue[openvino.InferRequest] = SimpleQueue()
        for _ in range(self.workers):
            self._idle.put(self.compiled.create_infer_request())
        # OpenVINO's binding sets itself up at first use, and hangs if two threads are first.
        self.run({one.get_any_name(): _ones(one) for one in self.compiled.inputs})

    def run(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """What the graph gives for one batch."""
        request = self._idle.get()
        try:
            made = request.infer([batch[name] for name in self._inputs], share_inputs=True)
        finally:
            self._idle.put(request)
        output: NDArray[np.float32] = made[0]
        return output


def _ones(declared: openvino.ConstOutput) -> NDArray[Any]:
    sizes = [one.get_length() if one.is_static else 1 for one in declared.get_partial_shape()]
    return np.ones(sizes, declared.get_element_type().to_dtype())
