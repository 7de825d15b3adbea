"""`secondlook export`: a graph of a ranker, for the engines that are fast on CPUs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Engine(StrEnum):
    """What runs the graph."""

    onnx = "onnx"
    openvino = "openvino"


class Precision(StrEnum):
    """In what it is computed."""

    fp32 = "fp32"
    bf16 = "bf16"
    int8 = "int8"


def export(
    ranker: Annotated[Path, typer.Argument(help="The ranker's folder; the graph goes into it.")],
    to: Annotated[Engine, typer.Option(help="What will run it.")] = Engine.openvino,
    precision: Annotated[
        Precision,
        typer.Option(
            help="fp32: torch's scores to 1e-3. bf16: some three times as fast where the CPU has "
            "it, as fast elsewhere; half the size. int8: as fast as fp32, a third to half the "
            "size. Both keep nearly the order of fp32 (Kendall τ above .98 in our tests); measure "
            "yours with `secondlook eval`.",
        ),
    ] = Precision.fp32,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Export a ranker for a CPU engine, which is faster there than torch.

    From then on every verb that loads the ranker runs the export, and needs no torch. Where the
    weights change later, the export is refused until it is made anew.

    [bold]Examples[/bold]

      secondlook export ranker --to openvino --precision bf16
      secondlook export ranker --to onnx
    """
    from secondlook.cli.progress import busy
    from secondlook.score.export import export_ranker

    with busy(f"exporting to {to.value}"):
        made = export_ranker(ranker, to.value, precision.value)
    if as_json:
        result = {
            "graph": str(made.export.graph),
            "bytes": made.size,
            "difference": made.difference,
            "spread": made.spread,
        }
        typer.echo(json.dumps(result))
        return
    typer.echo(
        f"{made.export.graph}: {made.size / 2**20:.0f} MiB; on a few pairs, whose logits spread "
        f"over {made.spread:.2f}, at most {made.difference:.2g} from torch"
    )
