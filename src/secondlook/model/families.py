"""The encoder families whose layers we can reach into, and how each one's layers are called.

transformers gives every layer the same mask. STRM needs that mask to be ours, and the warm form a
mask of its own in each layer and a stop between two layers; so each family says here how its
embeddings, its layers and its end are run one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from secondlook.errors import CheckpointProblem
from secondlook.model.strm import SHUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel


class Family:
    """BERT (MiniLM too): learned positions, layers that map states and mask to states."""

    def __init__(self, encoder: PreTrainedModel) -> None:
        self.encoder: Any = encoder

    @property
    def first_position(self) -> int:
        """The index of the first position's embedding."""
        return 0

    @property
    def layers(self) -> torch.nn.ModuleList:
        """The layers, lowest first."""
        layers: torch.nn.ModuleList = self.encoder.encoder.layer
        return layers

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer, all in segment 0: [batch, tokens, hidden]."""
        states: Tensor = self.encoder.embeddings(
            input_ids=ids,
            token_type_ids=torch.zeros_like(ids),
            position_ids=positions + self.first_position,
        )
        return states

    def run(
        self,
        states: Tensor,  # [batch, tokens, hidden]
        positions: Tensor,  # [batch, tokens]
        mask: Callable[[int], Tensor],  # layer → [batch, 1, 1 or tokens, tokens], added to logits
        layers: range,
    ) -> Tensor:
        """The states above these layers."""
        for index in layers:
            states = self.layers[index](states, mask(index))
        return states

    def end(self, states: Tensor) -> Tensor:
        """What the encoder gives out, from the states above its last layer."""
        return states

    def masks(self, mask: Tensor, positions: Tensor) -> Any:  # noqa: ANN401 - a dict of masks for some
        """The mask as the encoder's own forward wants it."""
        return mask


class Electra(Family):
    """ELECTRA: small ones embed narrower than their layers and project."""

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """As BERT's, then projected."""
        states = super().embed(ids, positions)
        if hasattr(self.encoder, "embeddings_project"):
            states = self.encoder.embeddings_project(states)
        return states


class Roberta(Family):
    """RoBERTa and XLM-RoBERTa: positions are numbered from behind the padding index."""

    @property
    def first_position(self) -> int:
        """The index of the first position's embedding."""
        padding: int = self.encoder.embeddings.padding_idx
        return padding + 1


class DistilBert(Family):
    """DistilBERT: no segments."""

    @property
    def layers(self) -> torch.nn.ModuleList:
        """The layers, lowest first."""
        layers: torch.nn.ModuleList = self.encoder.transformer.layer
        return layers

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer."""
        states: Tensor = self.encoder.embeddings(input_ids=ids, position_ids=positions)
        return states


class MPNet(Roberta):
    """MPNet: RoBERTa's positions, no segments; a bias by distance, the same in every layer."""

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer."""
        states: Tensor = self.encoder.embeddings(
            input_ids=ids, position_ids=positions + self.first_position
        )
        return states

    def run(
        self, states: Tensor, positions: Tensor, mask: Callable[[int], Tensor], layers: range
    ) -> Tensor:
        """The states above these layers; distances are between positions, not places."""
        stack = self.encoder.encoder
        distances = positions[:, None, :] - positions[:, :, None]  # [batch, from, to]
        bias = stack.relative_attention_bias(stack.relative_position_bucket(distances))
        bias = bias.permute(0, 3, 1, 2)  # [batch, heads, from, to]
        for index in layers:
            states = self.layers[index](states, mask(index), position_bias=bias)[0]
        return states


class ModernBert(Family):
    """ModernBERT: rotary positions, and most layers see a window around each position only."""

    @property
    def layers(self) -> torch.nn.ModuleList:
        """The layers, lowest first."""
        layers: torch.nn.ModuleList = self.encoder.layers
        return layers

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The states below the first layer."""
        states: Tensor = self.encoder.embeddings(input_ids=ids)
        return states

    def run(
        self, states: Tensor, positions: Tensor, mask: Callable[[int], Tensor], layers: range
    ) -> Tensor:
        """The states above these layers."""
        rotary = {
            kind: self.encoder.rotary_emb(states, positions, kind)
            for kind in sorted(set(self.encoder.config.layer_types))
        }
        for index in layers:
            layer: Any = self.layers[index]
            kind = layer.attention_type
            states = layer(
                states,
                attention_mask=self.masks(mask(index), positions)[kind],
                position_embeddings=rotary[kind],
            )
        return states

    def end(self, states: Tensor) -> Tensor:
        """The last norm."""
        normed: Tensor = self.encoder.final_norm(states)
        return normed

    def masks(self, mask: Tensor, positions: Tensor) -> dict[str, Tensor]:
        """One mask per kind of layer: the window is ours to draw, since we give the mask."""
        distances = (positions[:, None, :] - positions[:, :, None]).abs()
        near = distances <= self.encoder.config.sliding_window
        return {"full_attention": mask, "sliding_attention": torch.where(near[:, None], mask, SHUT)}


FAMILIES: dict[str, type[Family]] = {
    "bert": Family,
    "distilbert": DistilBert,
    "electra": Electra,
    "modernbert": ModernBert,
    "mpnet": MPNet,
    "roberta": Roberta,
    "xlm-roberta": Roberta,
}


def family(encoder: Any, needed_for: str) -> Family:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
    """How this encoder's layers are run; raises CheckpointProblem where we do not know."""
    kind = encoder.config.model_type
    if kind not in FAMILIES:
        raise CheckpointProblem(
            f"{needed_for} reaches into the encoder's layers, and {kind!r} is none of the families "
            f"we know ({', '.join(FAMILIES)}); take a base of one of these, or do without"
        )
    return FAMILIES[kind](encoder)
