"""The warm form: the ranker begins as the bi-encoder it is made from, and learns to look across.

Query and document stand side by side in one sequence, each encoded as the bi-encoder would: own
special tokens, positions from 0, segment 0. In layer l a learned gate g_l multiplies what a token
attends to in the other part, before attention is normalised: log g_l is added to the logits. Then

    score = alpha · cos(query vector, document vector) + w · h[CLS] + b

with the vectors pooled over their own part. At the start w = b = 0 and every gate is all but shut,
so the order is very nearly the bi-encoder's own; with separate layers only it is exactly that. A
gate of 1 is the attention of a plain cross-encoder.

The gate itself is the parameter, not its logarithm: an optimiser's steps have about one size, and
from log g = -10 a step of .02 would need 500 of them to 1 (docs/decisions/0174).
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import position_limit
from secondlook.model.families import SHUT, family
from secondlook.model.strm import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel

ALPHA = 40.0
"""Where alpha begins: it makes cosines, which lie close together, into logits that do not."""
GATE = exp(-10)
"""Where every gate begins: low enough that the ranker is as good as its bi-encoder. For e5-small on
BM25's top 100 of TREC DL 2020 the order's Kendall τ with the cosine's is .99 at e^-8 already, but
nDCG@10 is .661 there and .665 with the parts shut off from each other."""
LEAST_GATE = exp(-12)
"""What training lets no gate fall below: there it still has a gradient, and can open again."""


class Warm(nn.Module):
    """A bi-encoder that sees both texts at once."""

    def __init__(
        self,
        encoder: PreTrainedModel,
        *,
        strm: bool,
        pooling: Literal["mean", "cls"],
        separate_layers: int,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.strm = strm
        self.pooling = pooling
        self.separate_layers = separate_layers
        self._family = family(encoder, "the warm form")
        layers = len(self._family.layers)
        if separate_layers > layers:
            raise CheckpointProblem(
                f"{separate_layers} separate layers were asked for, and the encoder has {layers}"
            )
        self.alpha = nn.Parameter(torch.tensor(ALPHA))
        self.gate = nn.Parameter(torch.full((layers,), GATE))  # [layers]
        self.head = nn.Linear(encoder.config.hidden_size, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.inputs = ("input_ids", "attention_mask", "first", *(["words"] if strm else []))
        """The names of what `forward` reads, in its order."""
        self.pad_id: int = encoder.config.pad_token_id or 0
        limit = position_limit(encoder.config.to_dict())
        self.positions = limit and 2 * limit  # each part begins anew

    def forward(
        self,
        input_ids: Tensor,  # [batch, tokens]
        attention_mask: Tensor,  # [batch, tokens], 0 for padding
        first: Tensor,  # [batch], how many tokens are the query's
        words: Tensor | None = None,  # [batch, tokens]
    ) -> Tensor:
        """One score per pair: [batch]."""
        positions, second = _parts(attention_mask, first)
        states = self._family.embed(input_ids, positions)
        states = self._family.run(
            states, positions, self._masks(attention_mask, second, words), range(self.layers)
        )
        return self._read(states, attention_mask, second)

    def begin(
        self, input_ids: Tensor, attention_mask: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """The states of one part alone above the separate layers: [batch, tokens, hidden].

        They depend on that part only, so a document's can be kept for the next query.
        """
        positions, _ = _parts(attention_mask, attention_mask.new_zeros(attention_mask.shape[0]))
        mask = visible(attention_mask, words)
        states = self._family.embed(input_ids, positions)
        return self._family.run(states, positions, lambda _: mask, range(self.separate_layers))

    def finish(
        self, states: Tensor, attention_mask: Tensor, first: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """The scores, from the states that `begin` gave for both parts, side by side: [batch]."""
        positions, second = _parts(attention_mask, first)
        states = self._family.run(
            states,
            positions,
            self._masks(attention_mask, second, words),
            range(self.separate_layers, self.layers),
        )
        return self._read(states, attention_mask, second)

    @property
    def layers(self) -> int:
        """How many layers the encoder has."""
        return len(self.gate)

    @property
    def gates(self) -> dict[str, float]:
        """Layer, from 1 → how far its gate is open; 0 for separate layers."""
        values = self.gate.detach().tolist()
        return {
            str(layer): value if layer > self.separate_layers else 0.0
            for layer, value in enumerate(values, start=1)
        }

    @torch.no_grad()
    def bound_gates(self) -> None:
        """Put gates that an optimiser's step took below the least back to it."""
        self.gate.clamp_(min=LEAST_GATE)

    @property
    def never_meet(self) -> bool:
        """Whether all layers are separate: a bi-encoder, which reads two vectors of each part."""
        return self.separate_layers == self.layers

    def vectors(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """The first token and the pooled vector of parts that `begin` saw: [batch, 2, hidden]."""
        states = self._family.end(states).float()
        return torch.stack([states[:, 0], self._pool(states, attention_mask.bool())], dim=1)

    def compare(self, queries: Tensor, documents: Tensor) -> Tensor:
        """The scores of parts that never meet, from their `vectors`: [batch]."""
        return self._score(queries[:, 0], queries[:, 1], documents[:, 1])

    def _masks(
        self, attention_mask: Tensor, second: Tensor, words: Tensor | None
    ) -> Callable[[int], Tensor]:
        seen = visible(attention_mask, words)
        across = (second[:, :, None] != second[:, None, :])[:, None]  # [batch, 1, from, to]

        def mask(layer: int) -> Tensor:
            if layer < self.separate_layers:
                return seen + torch.where(across, SHUT, 0.0)
            gate = self.gate[layer].clamp(min=torch.finfo(self.gate.dtype).tiny)
            return seen + torch.where(across, gate.log(), 0.0)

        return mask

    def _read(self, states: Tensor, attention_mask: Tensor, second: Tensor) -> Tensor:
        states = self._family.end(states).float()
        real = attention_mask.bool()
        query, document = self._pool(states, real & ~second), self._pool(states, real & second)
        return self._score(states[:, 0], query, document)

    def _score(self, first: Tensor, query: Tensor, document: Tensor) -> Tensor:
        cosine = functional.cosine_similarity(query, document)
        # a sum of products, which autocast leaves in float32, where a matrix product is rounded
        head = (first * self.head.weight[0]).sum(-1) + self.head.bias
        return self.alpha * cosine + head

    def _pool(self, states: Tensor, part: Tensor) -> Tensor:
        """The vector of a part: its mean, special tokens included, or its first token."""
        if self.pooling == "cls":
            start = part.to(torch.int32).argmax(dim=1)
            return states[torch.arange(len(states), device=states.device), start]
        weights = part.to(states.dtype)[:, :, None]
        return (states * weights).sum(1) / weights.sum(1)


def _parts(attention_mask: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Positions that begin anew with the second part, and which tokens belong to it.

    Padding has position 0: behind a long document it would go beyond those that there are.
    """
    index = torch.arange(attention_mask.shape[1], device=attention_mask.device)[None]
    second = index >= first[:, None]
    return torch.where(second, index - first[:, None], index) * attention_mask, second
