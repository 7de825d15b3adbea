"""What of a warm ranker makes vectors of single texts: the bi-encoder in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from secondlook.model.warm import Warm


class VectorNetwork(nn.Module):
    """A text's unit vector and, for a query, how a cosine becomes the ranker's score.

    Takes the ranker over: its parts see nothing of each other from then on. So the score of a
    ranker whose layers are all separate is `slope · cosine + intercept`, and another's is near to
    it while its gates are nearly shut.
    """

    def __init__(self, ranker: Warm) -> None:
        super().__init__()
        self.ranker = ranker
        ranker.separate_layers = ranker.layers
        self.inputs = tuple(name for name in ranker.inputs if name != "first")
        """The names of what `forward` reads, in its order."""
        self.pad_id, self.positions = ranker.pad_id, ranker.positions

    @property
    def encoder(self) -> PreTrainedModel:
        """The ranker's."""
        return self.ranker.encoder

    @property
    def dimension(self) -> int:
        """Of the vectors."""
        return int(self.encoder.config.hidden_size)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """For each text its vector, then slope and intercept: [batch, dimension + 2]."""
        states = self.ranker.begin(input_ids, attention_mask, words)
        first, pooled = self.ranker.vectors(states, attention_mask).unbind(dim=1)
        head = self.ranker.head
        intercept = (first * head.weight[0]).sum(-1, keepdim=True) + head.bias
        slope = self.ranker.alpha.expand_as(intercept)
        return torch.cat([functional.normalize(pooled, dim=-1), slope, intercept], dim=1)
