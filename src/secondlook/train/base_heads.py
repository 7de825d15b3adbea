"""The pre-training heads that a base brings with it, so that adapting need not begin without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from secondlook.data.durable import replacing_file
from secondlook.model.checkpoint import locate, weight_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from secondlook.train.pretraining import Heads

_FILE = "base-heads.safetensors"
"""What they are called in the folder of the phase `adapt`."""

_WORDS = {
    "transform.weight": ("cls.predictions.transform.dense.weight", "lm_head.dense.weight"),
    "transform.bias": ("cls.predictions.transform.dense.bias", "lm_head.dense.bias"),
    "norm.weight": (
        *(
            "cls.predictions.transform.LayerNorm.weight",
            "cls.predictions.transform.LayerNorm.gamma",
        ),
        "lm_head.layer_norm.weight",
    ),
    "norm.bias": (
        *("cls.predictions.transform.LayerNorm.bias", "cls.predictions.transform.LayerNorm.beta"),
        "lm_head.layer_norm.bias",
    ),
    "bias": (
        *("cls.predictions.bias", "cls.predictions.decoder.bias"),
        *("lm_head.bias", "lm_head.decoder.bias"),
    ),
}
"""As BERT (gamma and beta in its first checkpoints) and RoBERTa call what finds hidden words."""
_NEXT = {
    "pool.weight": ("bert.pooler.dense.weight", "pooler.dense.weight"),
    "pool.bias": ("bert.pooler.dense.bias", "pooler.dense.bias"),
    "follows.weight": ("cls.seq_relationship.weight",),
    "follows.bias": ("cls.seq_relationship.bias",),
}
"""As BERT calls what tells whether a sentence follows."""


def store_heads(base: str | Path, folder: Path) -> None:
    """Store the base's own heads in a folder; nothing where it has none for hidden words."""
    words = _read(locate(base), _WORDS)
    if words is None or (folder / _FILE).is_file():
        return
    follows = _read(locate(base), _NEXT) or {}
    for name in ("follows.weight", "follows.bias"):  # BERT's class 0 follows, ours is 1
        if name in follows:
            follows[name] = follows[name].flip(0)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing_file(folder / _FILE) as half:
        save_file({n: w.float().contiguous() for n, w in (words | follows).items()}, half)


def put_into(heads: Heads, folder: Path) -> set[str]:
    """Give the heads the weights stored in a folder; gives the names of those, none without.

    Markers are words that the base did not know: their bias begins at zero.
    """
    if not (folder / _FILE).is_file():
        return set()
    weights = load_file(folder / _FILE)
    bias = torch.zeros_like(heads.bias)
    bias[: len(weights["bias"])] = weights["bias"]
    heads.load_state_dict(weights | {"bias": bias}, strict=False)
    return set(weights)


def _read(folder: Path, names: Mapping[str, tuple[str, ...]]) -> dict[str, Tensor] | None:
    """The weights by our names; None unless all are there."""
    found: dict[str, Tensor] = {}
    for path in weight_files(folder):
        with safe_open(path, framework="pt") as file:
            stored = set(file.keys())
            for ours, theirs in names.items():
                for name in theirs:
                    if name in stored:
                        found.setdefault(ours, file.get_tensor(name))
    return found if found.keys() == names.keys() else None
