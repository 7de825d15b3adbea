"""A cross-encoder of sentence-transformers whose head is a chain of modules behind an encoder.

Each module reads a tensor by its name and writes one: Pooling makes `sentence_embedding` of
`token_embeddings`, and the last one makes `scores`. A class here has its weights by the names that
sentence-transformers stores them under, so that a folder stays one of theirs.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from secondlook.errors import CheckpointProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from transformers import PreTrainedModel

    from secondlook.model.saved_files import SavedModule

TOKENS, TEXT, SCORES = "token_embeddings", "sentence_embedding", "scores"
WEIGHTS = "model.safetensors"
_LAYER_ACTIVATIONS: dict[str, type[nn.Module]] = {
    kind.__name__: kind
    for kind in (
        *(nn.Identity, nn.Tanh, nn.Sigmoid, nn.ReLU, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.ELU),
        *(nn.Mish, nn.Softplus),
    )
}


class HeadModule(nn.Module, ABC):
    """A module of the chain, and what is stored of it."""

    reads: str = TEXT
    writes: str = TEXT

    def __init__(self, saved: SavedModule) -> None:
        super().__init__()
        self.saved = saved

    @abstractmethod
    def forward(self, given: Tensor, real: Tensor) -> Tensor:
        """What it writes, of what it reads; `real`, [batch, tokens], is 0 for padding."""


class Pooling(HeadModule):
    """One vector of all tokens, or several side by side."""

    reads = TOKENS
    _MODES: ClassVar[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
        "cls": lambda states, real: states[:, 0],
        "max": lambda states, real: states.masked_fill(real == 0, -torch.inf).amax(1),
        "mean": lambda states, real: (states * real).sum(1) / real.sum(1),
        "mean_sqrt_len_tokens": lambda states, real: (states * real).sum(1) / real.sum(1).sqrt(),
        "weightedmean": lambda states, real: (
            (states * real.cumsum(1) * real).sum(1) / (real.cumsum(1) * real).sum(1)
        ),
        "lasttoken": lambda states, real: (states * _is_last(real)).sum(1),
    }
    """By sentence-transformers' names; padding stands on the right."""

    def __init__(self, saved: SavedModule) -> None:
        super().__init__(saved)
        config = saved.config
        modes = config.get("pooling_mode")
        if modes is None:  # as older versions wrote it
            older = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
            names = [key.removeprefix("pooling_mode_") for key in older]
            modes = [
                name if name in self._MODES else name.removesuffix("_tokens") for name in names
            ]
            modes = ["cls" if mode == "cls_token" else mode for mode in modes] or ["mean"]
        self.modes = [modes] if isinstance(modes, str) else list(modes)
        if unknown := [mode for mode in self.modes if mode not in self._MODES]:
            raise ValueError(f"pools by {unknown[0]!r}; {', '.join(self._MODES)} are known here")

    def forward(self, given: Tensor, real: Tensor) -> Tensor:
        """One vector per pair: [batch, hidden · modes]."""
        weights = real[:, :, None].to(given.dtype)
        return torch.cat([self._MODES[mode](given, weights) for mode in self.modes], -1)


def _is_last(real: Tensor) -> Tensor:
    """1 for each row's last token that is not padding: [batch, tokens, 1]."""
    return real - functional.pad(real[:, 1:], (0, 0, 0, 1))


class Dense(HeadModule):
    """A linear layer and its activation; with `use_residual`, what it read is added."""

    def __init__(self, saved: SavedModule) -> None:
        super().__init__(saved)
        config = saved.config
        wide, narrow = int(config["in_features"]), int(config["out_features"])
        self.linear = nn.Linear(wide, narrow, bias=config.get("bias", True), device="meta")
        self.activation = _activation(config.get("activation_function", "torch.nn.Tanh"))
        self.adds_what_it_read = bool(config.get("use_residual", False))
        if self.adds_what_it_read and wide != narrow:
            self.residual = nn.Linear(wide, narrow, bias=False, device="meta")
        self.reads = config.get("module_input_name") or TEXT
        self.writes = config.get("module_output_name") or self.reads

    def forward(self, given: Tensor, real: Tensor) -> Tensor:
        """One vector per pair: [batch, out features]."""
        made: Tensor = self.activation(self.linear(given))
        if self.adds_what_it_read:
            made = made + (self.residual(given) if hasattr(self, "residual") else given)
        return made


class LayerNorm(HeadModule):
    """The norm over the features."""

    def __init__(self, saved: SavedModule) -> None:
        super().__init__(saved)
        self.norm = nn.LayerNorm(int(saved.config["dimension"]), device="meta")

    def forward(self, given: Tensor, real: Tensor) -> Tensor:
        """As it reads."""
        made: Tensor = self.norm(given)
        return made


class Normalize(HeadModule):
    """Vectors of length one."""

    def __init__(self, saved: SavedModule) -> None:
        super().__init__(saved)
        self.reads = saved.config.get("module_input_name") or TEXT
        self.writes = saved.config.get("module_output_name") or self.reads

    def forward(self, given: Tensor, real: Tensor) -> Tensor:
        """As it reads."""
        return functional.normalize(given, dim=-1)


class Dropout(HeadModule):
    """Nothing, but in training."""

    def __init__(self, saved: SavedModule) -> None:
        super().__init__(saved)
        self.dropout = nn.Dropout(float(saved.config.get("dropout", 0.2)))

    def forward(self, given: Tensor, real: Tensor) -> Tensor:
        """As it reads."""
        made: Tensor = self.dropout(given)
        return made


_KINDS: dict[str, type[HeadModule]] = {
    kind.__name__: kind for kind in (Pooling, Dense, LayerNorm, Normalize, Dropout)
}


class ModularClassifier(nn.Module):
    """An encoder and the chain behind it, in the place of a classifier of transformers."""

    base_model_prefix = "encoder"

    def __init__(self, encoder: PreTrainedModel, head: Sequence[HeadModule]) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.ModuleList(head)

    @property
    def base_model(self) -> PreTrainedModel:
        """As transformers calls it."""
        return self.encoder

    @property
    def config(self) -> Any:  # noqa: ANN401 - a PreTrainedConfig
        """The encoder's."""
        return self.encoder.config

    def resize_token_embeddings(self, size: int) -> None:
        """Make room for new tokens."""
        self.encoder.resize_token_embeddings(size)

    def logits(self, read: Mapping[str, Any], real: Tensor) -> Tensor:
        """What the chain makes of the encoder's states: [batch, logits]."""
        known: dict[str, Tensor] = {TOKENS: self.encoder(**read).last_hidden_state}
        for module in self.head:
            assert isinstance(module, HeadModule)
            known[module.writes] = module(known[module.reads], real)
        return known[SCORES]

    def save_pretrained(self, folder: Path) -> None:
        """Write the encoder, and each module into a folder of its own."""
        self.encoder.save_pretrained(folder)
        for module in self.head:
            assert isinstance(module, HeadModule)
            own = folder / module.saved.path
            own.mkdir(exist_ok=True)
            (own / "config.json").write_text(
                json.dumps(dict(module.saved.config), indent=2) + "\n", encoding="utf-8"
            )
            if weights := {name: weight.detach() for name, weight in module.state_dict().items()}:
                save_file(weights, own / WEIGHTS)


def load_head(folder: Path, saved: Sequence[SavedModule]) -> list[HeadModule]:
    """The chain with its stored weights; raises CheckpointProblem where it makes no score."""
    known, head = {TOKENS}, []
    for one in saved:
        try:
            module = _KINDS[one.kind](one)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointProblem(
                f"{folder / one.path} is a {one.kind} module that cannot be followed: {error}"
            ) from error
        if module.reads not in known:
            raise CheckpointProblem(
                f"{folder / one.path} reads {module.reads!r}, which no module before it writes"
            )
        known.add(module.writes)
        _load_weights(module, folder / one.path)
        head.append(module)
    if not head or head[-1].writes != SCORES or not isinstance(head[-1], Dense):
        raise CheckpointProblem(
            f"{folder} ends in no Dense module that writes {SCORES!r}, so it gives no score"
        )
    return head


def keep_logits(head: Sequence[HeadModule], positive: int, negative: int) -> None:
    """Make one logit of several: the difference of two of them."""
    last = head[-1]
    assert isinstance(last, Dense)
    if not isinstance(last.activation, nn.Identity) or last.adds_what_it_read:
        raise CheckpointProblem(
            "the last Dense module gives several scores through an activation or with what it read "
            "added, and these cannot be made one"
        )
    last.linear = difference(last.linear, positive, negative)
    last.saved = replace(last.saved, config=dict(last.saved.config) | {"out_features": 1})


def difference(several: nn.Linear, positive: int, negative: int) -> nn.Linear:
    """A layer with one logit: one of those of `several`, minus another."""
    one = nn.Linear(several.in_features, 1, bias=several.bias is not None)
    with torch.no_grad():
        one.weight.copy_(several.weight[positive] - several.weight[negative])
        if several.bias is not None:
            one.bias.copy_(several.bias[positive] - several.bias[negative])
    return one


def _load_weights(module: HeadModule, folder: Path) -> None:
    if not module.state_dict():
        return
    path = folder / WEIGHTS
    try:
        stored = {name: weight.float() for name, weight in load_file(path).items()}
        module.load_state_dict(stored, assign=True)
    except Exception as error:  # missing, damaged, a pickle only, or of other sizes
        raise CheckpointProblem(
            f"{path} is missing, damaged, or not of the sizes in its config.json ({error}); only "
            "safetensors are loaded: take a copy of the model that has them"
        ) from error


def _activation(named: str) -> nn.Module:
    module, _, kind = str(named).rpartition(".")
    if not module.startswith("torch.nn") or kind not in _LAYER_ACTIVATIONS:
        raise ValueError(
            f"its activation is {named}; {', '.join(_LAYER_ACTIVATIONS)} of torch are known here"
        )
    return _LAYER_ACTIVATIONS[kind]()
