"""A warm ranker in two: the layers that read one text, and those that read both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from secondlook.model.warm import Warm


class LowerLayers(nn.Module):
    """The separate layers: a text alone becomes the states of its tokens."""

    def __init__(self, ranker: Warm) -> None:
        super().__init__()
        self.ranker = ranker
        self.inputs = tuple(name for name in ranker.inputs if name != "first")
        """The names of what `forward` reads, in its order."""

    @property
    def encoder(self) -> PreTrainedModel:
        """The ranker's."""
        return self.ranker.encoder

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """The states above the separate layers: [batch, tokens, hidden]."""
        return self.ranker.begin(input_ids, attention_mask, words)


class UpperLayers(nn.Module):
    """The other layers: the states of query and document, side by side, become a score."""

    def __init__(self, ranker: Warm) -> None:
        super().__init__()
        self.ranker = ranker
        self.inputs = ("states", *(name for name in ranker.inputs if name != "input_ids"))
        """The names of what `forward` reads, in its order."""

    @property
    def encoder(self) -> PreTrainedModel:
        """The ranker's."""
        return self.ranker.encoder

    def forward(
        self, states: Tensor, attention_mask: Tensor, first: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """One score per pair: [batch]. states: [batch, tokens, hidden]."""
        return self.ranker.finish(states, attention_mask, first, words)
