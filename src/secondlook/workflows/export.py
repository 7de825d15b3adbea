"""An export of a re-ranker, for ONNX Runtime or OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.score.export import Exported


def export(
    ranker: str | Path,
    *,
    backend: Literal["onnx", "openvino"] = "openvino",
    precision: Literal["fp32", "bf16", "int8"] = "fp32",
    progress: Progress | ProgressCallback | None = None,
) -> Exported:
    """Export a re-ranker into its own folder, where everything that loads it finds the export.

    An earlier export for the same back end and precision is replaced.
    """
    from secondlook.score.export import export_ranker

    with as_progress(progress).busy(f"exporting to {backend}"):
        return export_ranker(ranker, backend, precision)


def export_for_speed(
    ranker: str | Path, *, progress: Progress | ProgressCallback | None = None
) -> bool:
    """Export to OpenVINO at bf16, the fastest on a CPU, unless that is there or cannot be made.

    Gives whether an export was made.
    """
    from importlib.util import find_spec

    from secondlook.errors import SecondlookError
    from secondlook.score.export_folder import Export

    told = as_progress(progress)
    if any(find_spec(module) is None for module in ("openvino", "onnx", "onnxscript")):
        told.say("torch is used; for faster inference: pip install 'secondlook[export]'")
        return False
    if Export(Path(ranker), "openvino", "bf16").is_there():
        return False
    try:
        told.say(export(ranker, precision="bf16", progress=told).summary())
    except SecondlookError as problem:
        told.say(f"torch is used: {problem}")
        return False
    return True


def faster_exported(folder: str | Path, ranker: object) -> str | None:
    """What to run first where torch scores on the CPU with a re-ranker of one's own, else None."""
    from secondlook.model.checkpoint import CARD
    from secondlook.score.export_folder import Export
    from secondlook.score.ranker import Ranker

    if not isinstance(ranker, Ranker) or ranker.backend.engine != "torch":
        return None
    from secondlook.score.torch_backend import TorchBackend

    slow = isinstance(ranker.backend, TorchBackend) and ranker.backend.device.type == "cpu"
    if not slow or not (Path(folder) / CARD).is_file():
        return None
    command = Export(Path(folder), "openvino", "fp32").command
    return f"torch scores on the CPU; OpenVINO is about twice as fast: {command}"
