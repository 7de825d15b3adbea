"""DeepCT: how much each word of a passage matters, as a regression over an encoder's tokens.

Dai and Callan, 2019: the target of a word is its query term recall, the share of the passage's
relevant queries that hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from secondlook.analyze import DEFAULT
from secondlook.encode.tokens import text_only
from secondlook.errors import CheckpointProblem, MissingExtra
from secondlook.model.checkpoint import (
    base_name,
    locate,
    open_trained,
    position_limit,
    read_config,
    read_tokenizer,
    replacing,
    undamaged,
    write_settings,
)
from secondlook.model.settings import Lineage
from secondlook.recipe import Settings

try:
    import torch
    from safetensors.torch import load_file, save_file
    from torch import Tensor, nn
except ImportError as error:
    raise MissingExtra("torch", "weighing words") from error

from secondlook.model.joint import takes_segments
from secondlook.model.loading import load_encoder, quiet

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer
    from transformers import PreTrainedModel

CARD = "weigher.json"
_HEAD = "weigher.safetensors"


class WeigherSettings(Settings):
    """What a weigher says of itself in `weigher.json`."""

    version: Literal[1] = 1
    max_length: int
    """Tokens read at once, special ones counted; a longer document is read in parts."""
    analyzer: str = DEFAULT
    """How words become the terms that are weighed; weighers made before it was kept are English."""
    lineage: Lineage


class DeepCT(nn.Module):
    """An encoder and one linear layer over its tokens."""

    def __init__(self, encoder: PreTrainedModel) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.config.hidden_size, 1)
        self.pad_id: int = encoder.config.pad_token_id or 0
        self.positions = position_limit(encoder.config.to_dict())
        self._segments = takes_segments(encoder)

    def forward(
        self,
        input_ids: Tensor,  # [batch, tokens]
        attention_mask: Tensor,  # [batch, tokens]
        token_type_ids: Tensor,  # [batch, tokens]
        words: Tensor,  # [batch, tokens], the word each token belongs to, -1 for none
        targets: Tensor | None = None,  # [batch, words], NaN where there is no word
    ) -> dict[str, Tensor]:
        """`weights` [batch, words], each the mean over its word's tokens.

        With targets also the `loss`: the mean squared error over all words of the batch.
        """
        read: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self._segments:
            read["token_type_ids"] = token_type_ids
        states: Tensor = self.encoder(**read).last_hidden_state
        by_token = self.head(states).squeeze(-1).float()  # [batch, tokens]
        count = int(words.max()) + 1 if targets is None else targets.shape[1]
        place = torch.where(words < 0, count, words)  # what is no word goes to a place of its own
        sums = by_token.new_zeros(len(words), count + 1)
        sizes = sums.scatter_add(1, place, torch.ones_like(by_token))
        weights = (sums.scatter_add(1, place, by_token) / sizes.clamp(min=1))[:, :count]
        if targets is None:
            return {"weights": weights}
        known = ~targets.isnan()
        return {"weights": weights, "loss": (weights[known] - targets[known]).square().mean()}


@dataclass(frozen=True, slots=True)
class WeigherModel:
    """What a weigher's folder holds, in memory."""

    network: DeepCT
    tokenizer: Tokenizer
    settings: WeigherSettings

    def __post_init__(self) -> None:
        # "[MASK]" in a text is a word of it
        object.__setattr__(self, "tokenizer", text_only(self.tokenizer))


def new_weigher(base: str | Path, max_length: int, analyzer: str = DEFAULT) -> WeigherModel:
    """A weigher from an encoder; its head is new and random."""
    folder = locate(base)
    limit = position_limit(read_config(folder)) or max_length
    settings = WeigherSettings(
        max_length=min(max_length, limit),
        analyzer=analyzer,
        lineage=Lineage(base=base_name(base)),
    )
    network = DeepCT(load_encoder(folder)).eval()
    return WeigherModel(network, read_tokenizer(folder), settings)


def load_weigher(source: str | Path) -> WeigherModel:
    """A trained weigher from a folder or hub id; never from pickles, nor with code of its own."""
    folder, settings = open_trained(source, "weigh", CARD, WeigherSettings)
    network = DeepCT(load_encoder(folder))
    head = load_file(undamaged(folder / _HEAD)) if (folder / _HEAD).is_file() else {}
    try:
        network.head.load_state_dict(head)
    except RuntimeError as error:
        raise CheckpointProblem(
            f"{folder / _HEAD} is missing, or of another encoder; fetch all of it"
        ) from error
    return WeigherModel(network.eval(), read_tokenizer(folder), settings)


def save_weigher(model: WeigherModel, folder: Path) -> None:
    """Write the folder, at once: a plain encoder of transformers, its head and the settings."""
    with replacing(folder) as half, quiet():
        model.network.encoder.save_pretrained(half)
        save_file(model.network.head.state_dict(), half / _HEAD)
        model.tokenizer.save(str(half / "tokenizer.json"))
        write_settings(half, model.settings, CARD)
