"""The papers' form: query and document in one sequence, relevance read from its first token."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from secondlook.model.checkpoint import position_limit
from secondlook.model.families import Layered, description, family
from secondlook.model.modular import ModularClassifier
from secondlook.model.strm import visible
from secondlook.model.tied_weights import name_once

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Float32Linear(nn.Linear):
    """A linear layer that autocast does not round.

    Of a thousand scores in bf16 a third are equal to others, and ties fall to the document id.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """The product in float32, whatever autocast says."""
        kind = input.device.type
        if not torch.is_autocast_enabled(kind):  # so that an exported graph has no trace of it
            return super().forward(input)
        with torch.autocast(kind, enabled=False):
            return functional.linear(input.float(), self.weight, self.bias)


class Joint(nn.Module):
    """A sequence classifier with one logit, and STRM where it is asked for.

    The classifier is one of transformers, or an encoder with sentence-transformers' modules.

    Logits are float32 under autocast too.
    """

    def __init__(self, classifier: PreTrainedModel | ModularClassifier, *, strm: bool) -> None:
        super().__init__()
        self.classifier = classifier
        name_once(self)
        _keep_head_in_float32(classifier)
        self.strm = strm
        encoder: Any = classifier.base_model
        known = description(classifier.config.to_dict())
        self._family = family(encoder, "STRM") if strm else known(encoder)
        self.inputs = tuple(_inputs(classifier, strm=strm))
        """The names of what `forward` reads, in its order."""
        self.pad_id: int = classifier.config.pad_token_id or 0
        self.positions = position_limit(classifier.config.to_dict())

    @property
    def first_token_layer(self) -> nn.Module | None:
        """The last layer, where the score is read from its first token only; else None."""
        if isinstance(self.classifier, ModularClassifier) or not isinstance(self._family, Layered):
            return None
        return self._family.layers[-1] if self._family.reads_first_token else None

    @property
    def encoder(self) -> Any:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
        """The classifier without its head; every form of network has its encoder by this name."""
        return self.classifier.base_model

    def forward(
        self,
        input_ids: Tensor,  # [batch, tokens]
        attention_mask: Tensor,  # [batch, tokens], 0 for padding
        token_type_ids: Tensor | None = None,  # [batch, tokens]
        words: Tensor | None = None,  # [batch, tokens]
    ) -> Tensor:
        """One logit per pair: [batch].

        With binary cross-entropy it equals the papers' two-class softmax: the logit is the
        difference of the two.
        """
        read: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            read["token_type_ids"] = token_type_ids
        if self.strm:
            assert isinstance(self._family, Layered)
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
            read["attention_mask"] = self._family.masks(visible(attention_mask, words), positions)
        if isinstance(self.classifier, ModularClassifier):
            logits = self.classifier.logits(read, attention_mask)
        else:
            logits = self._family.logits(self.classifier, read, attention_mask)
        return logits.squeeze(-1)


def _keep_head_in_float32(classifier: PreTrainedModel | ModularClassifier) -> None:
    """Pooler, dense and last layer, however the family calls them: all that is no encoder layer."""
    inside = f"{classifier.base_model_prefix}."
    for name, layer in list(classifier.named_modules()):
        if type(layer) is nn.Linear and (not name.startswith(inside) or ".pooler." in name):
            owner, _, own_name = name.rpartition(".")
            precise = Float32Linear(1, 1, bias=layer.bias is not None, device="meta")
            precise.in_features, precise.out_features = layer.in_features, layer.out_features
            precise.weight, precise.bias = layer.weight, layer.bias
            setattr(classifier.get_submodule(owner), own_name, precise.train(layer.training))


def _inputs(classifier: PreTrainedModel | ModularClassifier, *, strm: bool) -> list[str]:
    names = ["input_ids", "attention_mask"]
    if takes_segments(classifier.base_model):
        names.append("token_type_ids")
    if strm:
        names.append("words")
    return names


def takes_segments(model: Any) -> bool:  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
    """Whether the model tells segments apart; RoBERTa's forward takes them, but knows only one."""
    several = getattr(model.config, "type_vocab_size", 0) > 1
    return several and "token_type_ids" in inspect.signature(model.forward).parameters
