"""The ranker that makes an index's vectors, copied into its folder to encode queries there."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from secondlook.errors import CheckpointProblem
from secondlook.model.checkpoint import (
    CARD,
    files_fingerprint,
    locate,
    open_checkpoint,
    read_config,
)
from secondlook.score.vector_export import can_export_encoder, export_encoder, export_layers
from secondlook.score.vectors import refuse_without_vectors, vector_fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

_EXPORTS = ("onnx", "openvino")


def identity(source: str | Path) -> str:
    """What vectors made by this ranker or bi-encoder depend on."""
    folder = locate(source)
    if not (folder / CARD).is_file():
        _refuse_classifier(folder, read_config(folder))
        return files_fingerprint(folder)
    checkpoint = open_checkpoint(folder)
    refuse_without_vectors(checkpoint)
    return vector_fingerprint(checkpoint)


def copy_encoder(source: str | Path, target: Path, *, states: bool = False) -> bool:
    """Put the ranker at `target`, whole or not at all; whether it was exported, to be fast.

    With `states`, the layers that make states and those that read them are exported, too.
    A bi-encoder becomes a ranker whose layers are all separate. Weights are linked rather than
    copied where the file system allows it: a ranker's files are replaced, never rewritten.
    """
    folder, half = locate(source), target.with_name(f"{target.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    if (folder / CARD).is_file():
        _copy(folder, half)
    else:
        from secondlook.score.warm import make_warm

        make_warm(folder, half, separate_layers="all")
    exported = can_export_encoder()
    if exported:
        export_encoder(half)
        if states:
            export_layers(half)
    half.rename(target)
    return exported


def _copy(folder: Path, target: Path) -> None:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if hidden or inside.parts[0] in _EXPORTS or not path.is_file():
            continue
        (target / inside).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".safetensors":
            _link(path.resolve(), target / inside)
        else:
            shutil.copyfile(path, target / inside)


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, target)


def _refuse_classifier(folder: Path, config: Mapping[str, Any]) -> None:
    kinds = config.get("architectures") or []
    if any("Classification" in str(kind) for kind in kinds):
        raise CheckpointProblem(
            f"{folder} is a cross-encoder, which reads query and document together and makes no "
            "vectors; take a bi-encoder, or a ranker that was made from one with: secondlook warm"
        )
