"""`secondlook teach`: teacher scores for knowledge distillation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import Backend, BackendOption, Precision, Replace, Teacher


def teach(
    groups: Annotated[Path, typer.Argument(help="Group file from `secondlook mine`.")],
    teacher: Teacher,
    output: Annotated[Path, typer.Option("--output", "-o", help="Group file to write (Parquet).")],
    backend: BackendOption = Backend.auto,
    precision: Annotated[
        Precision, typer.Option(help="Numeric precision: fp32, bf16 or int8.")
    ] = Precision.auto,
    replace: Replace = False,
) -> None:
    """Add a teacher model's scores to training groups, for knowledge distillation.

    The labels do not change. The phase `distil` of a recipe trains a small re-ranker to reproduce
    the scores of the larger teacher. If interrupted, the same command resumes.

    [bold]Example[/bold]

      secondlook teach train.parquet --teacher cross-encoder/ms-marco-MiniLM-L6-v2
          -o taught.parquet
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.teach import teach as run

    result = run(
        groups,
        teacher,
        output,
        backend=backend.value,
        precision=precision.value,
        replace=replace,
        progress=Bars(),
    )
    typer.echo(result.summary())
