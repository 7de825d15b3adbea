"""The mean of a network's weights over the last steps.

Lists that are easy teach nothing, but Adam takes a step of full size for whatever gradient they
have. Such steps cancel out in the mean; what many lists agree on stays.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import nn

_FILE = "average.safetensors"


class Average:
    """A mean in which a step counts less the longer ago it was: by `keep` for every step since."""

    def __init__(self, network: nn.Module, keep: float) -> None:
        self._keep = keep
        self._steps = 0
        self._weights = {
            name: weight for name, weight in network.named_parameters() if weight.requires_grad
        }
        self._means = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are. The first steps count as in a plain mean."""
        self._steps += 1
        keep = min(self._keep, self._steps / (self._steps + 1))
        for name, weight in self._weights.items():
            self._means[name].lerp_(weight, 1 - keep)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The network with the mean weights; the last ones are put back in the end."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def save(self, state: Path) -> None:
        """Keep it with a saved state of the run."""
        save_file(self._means, state / _FILE)

    def load(self, state: Path, steps: int) -> None:
        """As it was when the state was saved, after so many steps."""
        self._steps = steps
        for name, mean in load_file(state / _FILE).items():
            self._means[name].copy_(mean)

    @torch.no_grad()
    def _swap(self) -> None:
        for name, weight in self._weights.items():
            last = weight.detach().clone()
            weight.copy_(self._means[name])
            self._means[name].copy_(last)

    @torch.no_grad()
    def into_network(self) -> None:
        """The network's weights become the mean."""
        for name, weight in self._weights.items():
            weight.copy_(self._means[name])
