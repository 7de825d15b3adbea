"""CCNU's form: a frozen encoder's features, contextual layers as in SDNet, its own output layer.

Query and document are encoded apart, and the encoder never learns: its layers are mixed by learned
weights, and what is above is small. So features can be kept, and training costs little.

The contextual layers follow SDNet (arXiv 1812.03593) as far as ranking has use for them: attention
from document to query at the level of words, two bidirectional LSTM layers for each part, attention
over the history of these levels, and attention of each part to itself. The output layer is section
2 of "CCNU at TREC 2019". What every layer reads is subject to dropout, as in its section 4.2.1, all
but the few matching signals themselves; the probability is the training phase's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from secondlook.model.checkpoint import position_limit
from secondlook.model.families import SHUT, family
from secondlook.model.strm import visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from transformers import PreTrainedModel

    from secondlook.model.settings import FrozenSettings


_DROPOUT = 0.4
"""The paper's; a training phase sets its own."""


class Frozen(nn.Module):
    """A ranker over the features of an encoder that stays as it is."""

    def __init__(self, encoder: PreTrainedModel, settings: FrozenSettings, *, strm: bool) -> None:
        super().__init__()
        self.encoder = encoder
        for weight in encoder.parameters():
            weight.requires_grad = False
        self.strm = strm
        self._family = family(encoder, "the frozen form")
        self.inputs = ("input_ids", "attention_mask", "first", *(["words"] if strm else []))
        """The names of what `forward` reads, in its order."""
        self.pad_id: int = encoder.config.pad_token_id or 0
        limit = position_limit(encoder.config.to_dict())
        self.positions = limit and 2 * limit  # each part begins anew
        self.recall: Callable[[Tensor, Tensor, Tensor | None], Tensor] | None = None
        """Where features are kept, what is asked instead of `features`."""
        self.mix = nn.Parameter(torch.zeros(len(self._family.layers) + 1))
        self.scale = nn.Parameter(torch.ones(()))
        self.context = Context(encoder.config.hidden_size, settings.hidden)
        self.output = TopSignals(2 * settings.hidden, settings.top, settings.mlp)

    def train(self, mode: bool = True) -> Self:  # noqa: FBT001, FBT002 - torch's signature
        """The encoder stays as it is at inference: its features must not depend on chance."""
        super().train(mode)
        self.encoder.train(mode=False)
        return self

    def forward(
        self,
        input_ids: Tensor,  # [batch, tokens]
        attention_mask: Tensor,  # [batch, tokens], 0 for padding
        first: Tensor,  # [batch], how many tokens are the query's
        words: Tensor | None = None,  # [batch, tokens]
    ) -> Tensor:
        """One score per pair: [batch]."""
        length = attention_mask.sum(1)
        parts = []
        for start, end in ((torch.zeros_like(first), first), (first, length)):
            place = torch.arange(int((end - start).max()), device=first.device)[None]
            mask = place < (end - start)[:, None]  # [batch, tokens of the part]
            place = (place + start[:, None]).clamp(max=input_ids.shape[1] - 1)
            ids = torch.where(mask, input_ids.gather(1, place), self.pad_id)
            own = None if words is None else torch.where(mask, words.gather(1, place), -1)
            features = (self.recall or self.features)(ids, mask, own)
            parts += [self._mixed(features), mask]
        # LSTM has no bf16 on some devices, and little to gain by it.
        with torch.autocast(input_ids.device.type, enabled=False):
            query, document = self.context(*parts)
            scores: Tensor = self.output(query, parts[1], document, parts[3])
        return scores

    def features(self, ids: Tensor, mask: Tensor, words: Tensor | None) -> Tensor:
        """The states below, between and above all layers: [batch, tokens, layers + 1, hidden]."""
        with torch.no_grad():
            positions = torch.arange(ids.shape[1], device=ids.device)[None].expand_as(ids)
            seen = visible(mask, words)
            states = [self._family.embed(ids, positions)]
            for layer in range(len(self._family.layers)):
                one = range(layer, layer + 1)
                states.append(self._family.run(states[-1], positions, lambda _: seen, one))
            return torch.stack([*states[:-1], self._family.end(states[-1])], dim=2)

    def _mixed(self, features: Tensor) -> Tensor:
        weights = self.mix.softmax(0) * self.scale  # [layers + 1]
        return (features.float() * weights[:, None]).sum(2)


class Context(nn.Module):
    """SDNet's contextual layers: [batch, tokens, features] of both parts to [.., 2 · hidden]."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        both = 2 * hidden  # of the two directions
        self.drop = nn.Dropout(_DROPOUT)
        self.word_attention = Attention(features, hidden)
        self.query_levels = nn.ModuleList([_lstm(features, hidden), _lstm(both, hidden)])
        self.document_levels = nn.ModuleList([_lstm(2 * features, hidden), _lstm(both, hidden)])
        self.query_meaning = _lstm(2 * both, hidden)
        history = features + 2 * both
        self.level_attention = nn.ModuleList([Attention(history, hidden) for _ in range(3)])
        self.fused = _lstm(5 * both, hidden)
        self.document_self = Attention(both, hidden)
        self.document_end = _lstm(2 * both, hidden)
        self.query_self = Attention(both, hidden)
        self.query_end = _lstm(2 * both, hidden)

    def forward(
        self, query: Tensor, query_mask: Tensor, document: Tensor, document_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What each token means, seen from both texts."""
        query, document = self.drop(query), self.drop(document)
        asked = self.word_attention(document, query, query, query_mask)
        q_levels, d_levels = [query], [torch.cat([document, asked], -1)]
        for of_query, of_document in zip(self.query_levels, self.document_levels, strict=True):
            q_levels.append(self._run(of_query, q_levels[-1], query_mask))
            d_levels.append(self._run(of_document, d_levels[-1], document_mask))
        meaning = self._run(self.query_meaning, torch.cat(q_levels[1:], -1), query_mask)
        q_history = torch.cat(q_levels, -1)
        d_history = torch.cat([document, *d_levels[1:]], -1)
        found = [
            attention(d_history, q_history, level, query_mask)
            for attention, level in zip(self.level_attention, [*q_levels[1:], meaning], strict=True)
        ]
        fused = self._run(self.fused, torch.cat([*d_levels[1:], *found], -1), document_mask)
        own = self.document_self(fused, fused, fused, document_mask)
        document = self._run(self.document_end, torch.cat([fused, own], -1), document_mask)
        own = self.query_self(meaning, meaning, meaning, query_mask)
        return self._run(self.query_end, torch.cat([meaning, own], -1), query_mask), document

    def _run(self, lstm: nn.Module, states: Tensor, mask: Tensor) -> Tensor:
        """Packed, so that what stands behind a text has no say in it."""
        packed = pack_padded_sequence(
            self.drop(states), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        made, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=mask.shape[1])
        return made


class Attention(nn.Module):
    """SDNet's: softmax over ReLU(U x) · D · ReLU(U y), with a diagonal D."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.drop = nn.Dropout(_DROPOUT)
        self.project = nn.Linear(width, hidden, bias=False)
        self.diagonal = nn.Parameter(torch.ones(hidden))

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """The values each query token attends to, by the keys: [batch, query tokens, width]."""
        left = functional.relu(self.project(self.drop(queries))) * self.diagonal
        logits = left @ functional.relu(self.project(self.drop(keys))).transpose(1, 2)
        logits = logits + torch.where(mask, 0.0, SHUT)[:, None]
        return logits.softmax(-1) @ values


class TopSignals(nn.Module):
    """CCNU's output layer.

    u = Σ βᵢ uᵢ with β ∝ exp(w · uᵢ) over query tokens; s = softmax(uᵀ W V) over document tokens;
    the score is an MLP of the `top` largest of s, largest first, 0 where there are fewer.
    """

    def __init__(self, width: int, top: int, hidden: int) -> None:
        super().__init__()
        self.top = top
        self.drop = nn.Dropout(_DROPOUT)
        self.weigh = nn.Linear(width, 1, bias=False)
        self.match = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(top, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(
        self, query: Tensor, query_mask: Tensor, document: Tensor, document_mask: Tensor
    ) -> Tensor:
        """One score per pair: [batch]."""
        query, document = self.drop(query), self.drop(document)
        signals = self.signals(query, query_mask, document, document_mask)
        first, activation, last = self.mlp
        scores: Tensor = last(self.drop(activation(first(signals))))
        return scores.squeeze(-1)

    def signals(
        self, query: Tensor, query_mask: Tensor, document: Tensor, document_mask: Tensor
    ) -> Tensor:
        """The largest of s: [batch, top]."""
        beta = (self.weigh(query).squeeze(-1) + torch.where(query_mask, 0.0, SHUT)).softmax(-1)
        pooled = (beta[:, :, None] * query).sum(1)  # [batch, width]
        matched = (document @ self.match(pooled)[:, :, None]).squeeze(-1)
        s = (matched + torch.where(document_mask, 0.0, SHUT)).softmax(-1)  # [batch, tokens]
        s = functional.pad(s, (0, max(0, self.top - s.shape[1])))
        return s.topk(self.top).values


def _lstm(width: int, hidden: int) -> nn.LSTM:
    return nn.LSTM(width, hidden, bidirectional=True, batch_first=True)
