"""Vectors and states by torch: for rankers that were not exported."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

from secondlook.errors import CheckpointProblem
from secondlook.model.network import load_model
from secondlook.model.state_networks import LowerLayers, UpperLayers
from secondlook.model.vector_network import VectorNetwork
from secondlook.model.warm import Warm
from secondlook.score.torch_backend import device_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


class TorchVectors:
    """Runs the encoder of a warm ranker, or some of its layers, in this process."""

    workers = 1
    """One batch has all cores, or the device, already."""
    token_budget = 4096

    def __init__(
        self, network: VectorNetwork | LowerLayers | UpperLayers, device: str | None = None
    ) -> None:
        self.device = device_of(device)
        self._network = network.eval().to(self.device)
        self._alone = threading.Lock()

    @classmethod
    def load(cls, folder: Path) -> TorchVectors:
        """Of the ranker in this folder."""
        return cls(vector_network(folder))

    def run(self, batch: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """What the network gives for a batch."""
        inputs = {
            name: torch.from_numpy(batch[name]).to(self.device) for name in self._network.inputs
        }
        with self._alone, torch.inference_mode():
            made: NDArray[np.float32] = self._network(**inputs).cpu().numpy()
        return made


def vector_network(folder: Path) -> VectorNetwork:
    """The encoder in a ranker; raises CheckpointProblem where there is none."""
    return VectorNetwork(_warm(folder))


def state_networks(folder: Path) -> tuple[LowerLayers, UpperLayers]:
    """The separate layers of a ranker and those above; raises CheckpointProblem likewise."""
    ranker = _warm(folder)
    return LowerLayers(ranker), UpperLayers(ranker)


def _warm(folder: Path) -> Warm:
    network = load_model(folder).network
    if not isinstance(network, Warm):
        raise CheckpointProblem(f"{folder} is of another form than warm and makes no vectors")
    return network
