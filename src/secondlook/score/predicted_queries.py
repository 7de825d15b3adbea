"""Runs a doc2query model over passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.model.doc2query import sample
from secondlook.score.torch_backend import device_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.model.doc2query import ExpanderModel


class PredictedQueries:
    """Passages in, the queries sampled for each out."""

    def __init__(
        self, model: ExpanderModel, count: int, *, top_k: int, seed: int, device: str | None = None
    ) -> None:
        self._device = device_of(device)
        self._model, self._count, self._top_k, self._seed = model, count, top_k, seed
        model.network.eval().to(self._device)

    def __call__(self, passages: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
        """For each id and text, its queries; one that came out empty is left out."""
        found = sample(
            self._model,
            passages,
            self._count,
            top_k=self._top_k,
            seed=self._seed,
            device=self._device,
        )
        return [tuple(query for query in own if query.strip()) for own in found]
