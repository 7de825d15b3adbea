"""BERT's two pre-training tasks on top of a ranker's encoder: hidden words, next sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from secondlook.encode.features import collate
from secondlook.model.families import family
from secondlook.model.strm import visible
from secondlook.train.sentences import NO_NEXT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.model.network import CrossEncoder
    from secondlook.train.sentences import Example


class Heads(nn.Module):
    """What reads hidden words and the next sentence out of the states; it starts untrained.

    Hidden words are found by comparing with the encoder's own embeddings, as in BERT.
    """

    def __init__(self, hidden: int, embedded: int, vocabulary: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.transform = nn.Linear(hidden, embedded)
        self.norm = nn.LayerNorm(embedded, eps=eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.pool = nn.Linear(hidden, hidden)
        self.follows = nn.Linear(hidden, 2)

    def words(self, states: Tensor, embeddings: Tensor) -> Tensor:
        """One logit for every word of the vocabulary: [hidden places, vocabulary]."""
        made = self.norm(functional.gelu(self.transform(states)))
        return functional.linear(made, embeddings, self.bias)

    def next(self, first: Tensor) -> Tensor:
        """Whether the second part is another document's (0) or follows (1): [batch, 2]."""
        logits: Tensor = self.follows(torch.tanh(self.pool(first)))
        return logits


class Pretraining(nn.Module):
    """A ranker's network, taught by its encoder alone."""

    def __init__(self, network: CrossEncoder) -> None:
        super().__init__()
        self.network = network
        embeddings = self.encoder.get_input_embeddings().weight
        vocabulary, embedded = embeddings.shape
        config = self.encoder.config
        eps = getattr(config, "layer_norm_eps", 1e-5)
        self.heads = Heads(config.hidden_size, embedded, vocabulary, eps)

    @property
    def encoder(self) -> Any:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
        """What is adapted."""
        return self.network.encoder

    def forward(
        self,
        input_ids: Tensor,  # [batch, tokens]
        attention_mask: Tensor,  # [batch, tokens]
        token_type_ids: Tensor,  # [batch, tokens]
        words: Tensor,  # [batch, tokens]
        rows: Tensor,  # [hidden]
        places: Tensor,  # [hidden]
        hidden: Tensor,  # [hidden], the tokens that were there
        follows: Tensor,  # [batch], NO_NEXT where it is not asked
    ) -> dict[str, Tensor]:
        """The loss of both tasks, and what it is made of."""
        read: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask}
        if "token_type_ids" in self.network.inputs:
            read["token_type_ids"] = token_type_ids
        if self.network.strm:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
            mask = visible(attention_mask, words)
            read["attention_mask"] = family(self.encoder, "STRM").masks(mask, positions)
        states: Tensor = self.encoder(**read).last_hidden_state
        embeddings = self.encoder.get_input_embeddings().weight
        found = self.heads.words(states[rows, places], embeddings).float()
        asked = (follows != NO_NEXT).sum().clamp(min=1)
        next_logits = self.heads.next(states[:, 0]).float()
        word_loss = functional.cross_entropy(found, hidden)
        next_loss = (
            functional.cross_entropy(next_logits, follows, ignore_index=NO_NEXT, reduction="sum")
            / asked
        )
        return {
            "loss": word_loss + next_loss,
            "words": word_loss,
            "next": next_loss,
            "right": (next_logits.argmax(1) == follows).sum(),
        }


def counts(gathered: Mapping[str, Tensor]) -> dict[str, float]:
    """How many hidden words and next sentences the two losses are means of."""
    asked = (gathered["follows"] != NO_NEXT).sum()
    return {"words": float(len(gathered["hidden"])), "next": float(asked)}


def gather(examples: Sequence[Example], network: CrossEncoder) -> dict[str, Tensor]:
    """Examples as `Pretraining` of the network reads them."""
    some = [example.features for example in examples]
    arrays = collate(some, network.pad_id, network.positions)
    names = ("input_ids", "attention_mask", "token_type_ids", "words")
    rows = np.repeat(np.arange(len(examples)), [len(example.places) for example in examples])
    return {
        **{name: torch.from_numpy(arrays[name]) for name in names},
        "rows": torch.from_numpy(rows),
        "places": torch.from_numpy(np.concatenate([example.places for example in examples])),
        "hidden": torch.from_numpy(np.concatenate([example.hidden for example in examples])),
        "follows": torch.tensor([example.follows for example in examples]),
    }
