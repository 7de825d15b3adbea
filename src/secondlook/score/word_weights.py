"""Runs a DeepCT network over parts of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from secondlook.encode.features import collate
from secondlook.score.batching import batches
from secondlook.score.torch_backend import device_of, fast_bf16

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.encode.features import Features
    from secondlook.model.deepct import DeepCT


def precision_on(device: str | None) -> str:
    """What it computes in there."""
    return "bf16" if fast_bf16(device_of(device)) else "fp32"


class WordWeights:
    """Parts in, the weight of each of their words out; parts of like length are run together.

    It computes in bf16 where the hardware does: frequencies are far coarser.
    """

    def __init__(
        self, network: DeepCT, *, device: str | None = None, token_budget: int = 8192
    ) -> None:
        self._device = device_of(device)
        self.precision = precision_on(device)
        self._network = network.eval().to(self._device)
        self._token_budget = token_budget

    def __call__(self, parts: Sequence[Features]) -> list[NDArray[np.float32]]:
        """[words] for each part, in the order given."""
        found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(parts)
        for batch in batches([len(part) for part in parts], self._token_budget):
            some = [parts[index] for index in batch]
            arrays = collate(some, self._network.pad_id, self._network.positions)
            del arrays["first"]
            read = {name: torch.from_numpy(rows).to(self._device) for name, rows in arrays.items()}
            with (
                torch.inference_mode(),
                torch.autocast(self._device.type, torch.bfloat16, enabled=self.precision == "bf16"),
            ):
                weights = self._network(**read)["weights"].cpu().numpy()
            for row, index in zip(weights, batch, strict=True):
                found[index] = row[: parts[index].words.max() + 1]
        return found
