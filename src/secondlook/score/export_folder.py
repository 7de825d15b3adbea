"""What was exported into a checkpoint's folder, and which of it runs. Nothing here needs an engine.

    RANKER/onnx/model.fp32.onnx       RANKER/openvino/model.bf16.xml and .bin

An ONNX graph of more than 1.5 GB has its weights beside it, in `model.fp32.onnx.data`.

Beside each graph stands a card, `model.bf16.json`, with the fingerprint of the weights that the
graph was made from. The card is written last: a graph without one was never finished.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from importlib.util import find_spec
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from secondlook.data.lock import locked
from secondlook.errors import BackendProblem, CheckpointProblem, MissingExtra, UnknownName
from secondlook.model.checkpoint import TYPES
from secondlook.model.saved_files import head_files, read_json, saved_files
from secondlook.recipe import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from secondlook.model.checkpoint import Checkpoint

Engine = Literal["onnx", "openvino"]
Precision = Literal["fp32", "bf16", "int8"]
ExportPart = Literal["model", "encoder", "lower", "upper"]
"""The whole network, the encoder that makes vectors of single texts, or of a warm ranker with some
separate layers these and those above them."""

_PACKAGE: dict[Engine, str] = {"onnx": "onnxruntime", "openvino": "openvino"}
_FILES: dict[Engine, tuple[str, ...]] = {"onnx": (".onnx",), "openvino": (".xml", ".bin")}
FASTEST_FIRST: tuple[tuple[Engine, Precision], ...] = (
    ("openvino", "bf16"),
    ("openvino", "fp32"),
    ("openvino", "int8"),
    ("onnx", "fp32"),
    ("onnx", "int8"),
)
"""As measured on CPUs with bf16; of equals, the more exact."""


class ExportCard(Settings):
    """What an export says of itself."""

    version: Literal[1] = 1
    fingerprint: str
    """Of the weights and settings that the graph was made from."""


@dataclass(frozen=True, slots=True)
class Export:
    """A graph that one engine runs at one precision."""

    folder: Path
    """The checkpoint's."""
    engine: Engine
    precision: Precision
    part: ExportPart = "model"
    """What of the network the graph is."""

    @property
    def graph(self) -> Path:
        """The file the engine opens."""
        return self._file(_FILES[self.engine][0])

    @property
    def files(self) -> list[Path]:
        """All files of the graph."""
        weights = weights_beside(self.graph)
        return [
            *(self._file(suffix) for suffix in _FILES[self.engine]),
            *([weights] if weights.is_file() else []),
        ]

    @property
    def card(self) -> Path:
        """The file that says what it was made from."""
        return self._file(".json")

    @property
    def command(self) -> str:
        """What makes it."""
        given = f"--to {self.engine} --precision {self.precision}"
        return f"secondlook export {self.folder} {given}"

    def is_there(self) -> bool:
        """Whether it was made, and to the end."""
        return all(path.is_file() for path in (*self.files, self.card))

    def _file(self, suffix: str) -> Path:
        return self.folder / self.engine / f"{self.part}.{self.precision}{suffix}"


def weights_beside(graph: Path) -> Path:
    """Where torch writes the weights that are too large for the file of an ONNX graph."""
    return graph.with_name(f"{graph.name}.data")


def choose(folder: Path, engine: Engine | None, precision: Precision | None) -> Export | None:
    """The fastest of the exports that are there, can run here, and are what was asked for.

    Raises BackendProblem where an engine was asked for and has no such export, MissingExtra where
    its package is not installed.
    """
    if engine is not None and find_spec(_PACKAGE[engine]) is None:
        raise MissingExtra(engine, f"the {engine} back end")
    wanted = [
        Export(folder, *kind)
        for kind in FASTEST_FIRST
        if engine in (None, kind[0]) and precision in (None, kind[1])
    ]
    for export in wanted:
        if export.is_there() and runs_here(export):
            return export
    if engine is None:
        return None
    raise BackendProblem(
        f"{folder} was not exported for {engine}"
        + (f" at {precision}" if precision else "")
        + f"; do it with: {(wanted[-1] if wanted else Export(folder, engine, 'fp32')).command}"
    )


def runs_here(export: Export) -> bool:
    """Whether the engine of an export is installed."""
    return find_spec(_PACKAGE[export.engine]) is not None


def check_fresh(export: Export, checkpoint: Checkpoint) -> None:
    """Raise CheckpointProblem where the graph is of other weights than the folder now holds.

    A folder that holds no weights at all, to be small where it is only served, has nothing to
    compare with.
    """
    try:
        card = ExportCard.model_validate(read_json(export.card))
    except (ValidationError, UnknownName) as error:
        raise CheckpointProblem(
            f"{export.card} cannot be read ({error}); export anew: {export.command}"
        ) from error
    if _weights(checkpoint.folder) and card.fingerprint != fingerprint(checkpoint):
        raise CheckpointProblem(
            f"{export.graph} was made from other weights or settings than {checkpoint.folder} "
            f"holds now, or by an older version that reads pairs otherwise; export anew: "
            f"{export.command}"
        )


def fingerprint(checkpoint: Checkpoint) -> str:
    """A digest of all that the graph is made from: weights, `config.json`, form, STRM, modules."""
    settings = checkpoint.settings
    graph_settings: dict[str, Any] = {
        "form": settings.encode.form,
        "strm": settings.encode.strm,
        "warm": settings.warm.model_dump() if settings.warm else None,
        "config": checkpoint.config,
    }
    if settings.warm:
        graph_settings["positions"] = "of padding, 0"  # older graphs cannot read two long texts
    digest = sha256(json.dumps(graph_settings, sort_keys=True).encode())
    head: list[Path] = []
    if settings.form == "joint" and saved_files(checkpoint.folder, checkpoint.config).head:
        head = head_files(checkpoint.folder)
    for path in [*_weights(checkpoint.folder), *head]:
        with path.open("rb") as file:
            digest.update(file_digest(file, sha256).digest())
    return f"sha256:{digest.hexdigest()}"


def _weights(folder: Path) -> list[Path]:
    """All weights but those of the query types, which no graph holds."""
    return sorted(path for path in folder.glob("*.safetensors") if path.name != TYPES)


@contextmanager
def replacing_export(export: Export, made_from: str) -> Iterator[Export]:
    """An export elsewhere, to be made in the block; it takes this one's place when that ends well.

    `made_from` is the fingerprint of what it is made from. Raises OutputInUse where another process
    is making the same export.
    """
    export.graph.parent.mkdir(exist_ok=True)
    # a fixed name: what a killed export left is cleared away by the next
    scratch = export.folder.absolute() / f".export.{export.part}.{export.engine}.{export.precision}"
    with locked(export.graph):
        rmtree(scratch, ignore_errors=True)
        try:
            made = replace(export, folder=scratch)
            made.graph.parent.mkdir(parents=True)
            yield made
            made.card.write_text(ExportCard(fingerprint=made_from).model_dump_json(indent=2) + "\n")
            for old in (export.card, *export.files):
                old.unlink(missing_ok=True)
            for new in (*made.files, made.card):
                new.replace(export.graph.with_name(new.name))
        finally:
            rmtree(scratch, ignore_errors=True)
