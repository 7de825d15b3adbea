"""A model with some of its layers left out: the start of a small student."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

from secondlook.errors import CheckpointProblem, MissingExtra, WrongArgument
from secondlook.model.checkpoint import (
    CARD,
    layer_count,
    locate,
    read_config,
    read_settings,
    replacing,
    weight_files,
    write_settings,
)
from secondlook.model.families import FAMILIES, Layered, description
from secondlook.model.settings import Phase, RankerSettings

try:
    from safetensors.torch import load_file, save_file
except ImportError as error:
    raise MissingExtra("torch", "leaving layers out of a model") from error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

_LAYER = re.compile(r"\b(layers?)\.(\d+)\.")
_NOT_COPIED = re.compile(
    r"onnx|openvino|\..*|README\.md|model.*\.safetensors|.*\.(bin|index\.json)"
)
"""In the model's own folder: weights, which are written anew, and what was made from them."""


def spread(layers: int, count: int) -> list[int]:
    """Which of the layers are kept: the first, the last, and others evenly between them."""
    return [round(at * (layers - 1) / max(1, count - 1)) for at in range(count)]


def write_fewer_layers(source: str | Path, count: int, folder: Path) -> None:
    """Write the model `source` with `count` of its layers; all else is as it was.

    Before it is trained it ranks badly: each layer reads what another one left out made of the
    text. Raises WrongArgument where there are not so many layers, and CheckpointProblem where they
    cannot be told apart.
    """
    given = locate(source)
    config = read_config(given)
    card = read_settings(given / CARD, RankerSettings) if (given / CARD).is_file() else None
    _check(given, config, card)
    layers = layer_count(config)
    if not 1 <= count <= layers:
        raise WrongArgument(f"{source} has {layers} layers, and {count} of them cannot be kept")
    kept = spread(layers, count)
    weights = {name: w for path in weight_files(given) for name, w in load_file(path).items()}
    with replacing(folder) as half:
        for path in given.iterdir():
            if path.is_dir() and not _NOT_COPIED.fullmatch(path.name):
                shutil.copytree(path, half / path.name)
            elif not _NOT_COPIED.fullmatch(path.name):
                shutil.copyfile(path, half / path.name)
        (half / "config.json").write_text(json.dumps(_config(config, kept), indent=2), "utf-8")
        save_file(_weights(weights, kept), half / "model.safetensors", {"format": "pt"})
        if card is not None:
            step = Phase(name=f"{count} of {layers} layers kept")
            fitted_to_other_scores = {"calibration": None, "fusion": None}
            changed = {"lineage": card.lineage.then(step), **fitted_to_other_scores}
            write_settings(half, card.model_copy(update=changed))


def _check(folder: Path, config: Mapping[str, Any], card: RankerSettings | None) -> None:
    if not issubclass(description(config), Layered):
        known = [name for name, family in FAMILIES.items() if issubclass(family, Layered)]
        raise CheckpointProblem(
            f"{folder}: layers of {config.get('model_type')!r} cannot be left out here; of "
            f"{', '.join(known)} they can"
        )
    if card is not None and card.form != "joint":
        raise CheckpointProblem(
            f"{folder} is of the {card.form} form, which has weights of its own for every layer; "
            f"leave layers out of its base model, {card.lineage.base}"
        )


def _config(config: Mapping[str, Any], kept: Sequence[int]) -> dict[str, Any]:
    """With the new number of layers, under each of its names, and the kinds of those kept."""
    changed = dict(config)
    for name in ("num_hidden_layers", "n_layers"):
        if name in config:
            changed[name] = len(kept)
    kinds = config.get("layer_types")
    if kinds is None and (every := config.get("global_attn_every_n_layers")):  # ModernBERT's
        full, near = "full_attention", "sliding_attention"
        kinds = [near if layer % every else full for layer in range(layer_count(config))]
    if kinds is not None:
        changed["layer_types"] = [kinds[layer] for layer in kept]
    return changed


def _weights(weights: Mapping[str, Tensor], kept: Sequence[int]) -> dict[str, Tensor]:
    """Those that belong to no layer, and those of the layers kept, numbered anew."""
    places = {layer: place for place, layer in enumerate(kept)}
    chosen = {}
    for name, weight in weights.items():
        found = _LAYER.search(name)
        if found is None:
            chosen[name] = weight
        elif (place := places.get(int(found[2]))) is not None:
            chosen[_LAYER.sub(f"{found[1]}.{place}.", name, count=1)] = weight
    return chosen
