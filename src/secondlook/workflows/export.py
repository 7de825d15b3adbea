"""An export of a re-ranker, for ONNX Runtime or OpenVINO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from pathlib import Path

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
