"""Which back end runs a checkpoint. A back end is imported only when it is the one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from secondlook.errors import BackendProblem, MissingExtra
from secondlook.model.checkpoint import open_checkpoint, read_tokenizer
from secondlook.score.export_folder import Export, check_fresh, choose

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from secondlook.encode.features import Features
    from secondlook.model.checkpoint import Checkpoint
    from secondlook.model.settings import RankerSettings
    from secondlook.score.export_folder import Engine, Precision
    from secondlook.score.graph_backend import GraphBackend

Opened = tuple["RankerSettings", "Tokenizer", "Backend"]


class Backend(Protocol):
    """What runs the network."""

    @property
    def engine(self) -> Literal["torch"] | Engine:
        """Which one it is, whatever was asked for."""
        ...

    @property
    def precision(self) -> Precision:
        """That it was opened with."""
        ...

    def logits(self, features: Sequence[Features]) -> NDArray[np.float32]:
        """One logit per encoded pair, in the order given, whatever pairs stand beside it."""


def open_backend(
    folder: Path,
    backend: Literal["auto", "torch"] | Engine,
    precision: Literal["auto"] | Precision,
    device: str | None,
    *,
    untrained_head: bool,
    same_on_any_machine: bool = False,
) -> Opened:
    """What `Ranker.load` promises."""
    if backend in ("onnx", "openvino") and device is not None:
        raise BackendProblem(f"a device is chosen for torch; {backend} runs on the CPU")
    export = None
    if backend != "torch" and device is None:
        engine = None if backend == "auto" else backend
        export = choose(folder, engine, None if precision == "auto" else precision)
    if export is None:
        return _open_torch(folder, precision, device, untrained_head=untrained_head)
    checkpoint = open_checkpoint(folder)
    check_fresh(export, checkpoint)
    try:
        run = open_export(export, checkpoint)
        run.deal_evenly = not same_on_any_machine
    except Exception as error:  # each engine has its own for a file that is damaged
        raise BackendProblem(
            f"{export.graph} cannot be loaded ({error}); export it anew: {export.command}"
        ) from error
    return checkpoint.settings, read_tokenizer(folder), run


def open_export(
    export: Export, checkpoint: Checkpoint, *, one_at_a_time: bool = False
) -> GraphBackend:
    """The engine, with the graph loaded; all cores run a batch where these come `one_at_a_time`."""
    if export.engine == "onnx":
        from secondlook.score.onnx_backend import OnnxBackend

        return OnnxBackend(export, checkpoint, one_at_a_time=one_at_a_time)
    from secondlook.score.openvino_backend import OpenVinoBackend

    return OpenVinoBackend(export, checkpoint, one_at_a_time=one_at_a_time)


def _open_torch(
    folder: Path,
    precision: Literal["auto"] | Precision,
    device: str | None,
    *,
    untrained_head: bool,
) -> Opened:
    if precision == "int8":
        raise BackendProblem(
            f"torch runs fp32 and bf16; for int8: {Export(folder, 'openvino', 'int8').command}"
        )
    try:
        from secondlook.model.network import load_model
        from secondlook.score.torch_backend import TorchBackend
    except ImportError as error:
        raise MissingExtra("torch", f"{folder} was not exported, and scoring with it") from error
    model = load_model(folder, untrained_head=untrained_head)
    run = TorchBackend(
        model.network, device=device, precision="fp32" if precision == "auto" else precision
    )
    return model.settings, model.tokenizer, run
