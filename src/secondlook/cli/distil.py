"""`secondlook distil`: a small re-ranker that ranks as a larger one does."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import Device, MaxSteps, QueriesSource, Teacher  # noqa: TC001


class Loss(StrEnum):
    """How the student's scores are compared with the teacher's."""

    kl = "kl"
    margin_mse = "margin_mse"


def distil(
    index: Annotated[Path, typer.Argument(help="Index folder.")],
    queries: QueriesSource,
    teacher: Teacher,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    student: Annotated[
        str,
        typer.Option(
            help="Student: a bi-encoder, a cross-encoder or a re-ranker; a folder or a Hugging "
            "Face model id. By default all-MiniLM-L6-v2.",
            show_default=False,
        ),
    ] = "sentence-transformers/all-MiniLM-L6-v2",
    student_layers: Annotated[
        int | None,
        typer.Option(
            help="Keep this many of the student's layers, evenly spread. With the teacher as the "
            "student, it starts as a part of the teacher.",
            min=1,
        ),
    ] = None,
    loss: Annotated[
        Loss,
        typer.Option(
            help="kl: the score distribution over a query's candidates; margin_mse: score "
            "differences."
        ),
    ] = Loss.kl,
    pool: Annotated[
        int, typer.Option(help="Documents that the first stage retrieves per query.", min=2)
    ] = 100,
    depth: Annotated[
        int, typer.Option(help="Of them, candidates that the teacher scores.", min=2)
    ] = 30,
    epochs: Annotated[float, typer.Option(help="Training epochs.")] = 2.0,
    max_steps: MaxSteps = None,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 2e-5,
    minutes: Annotated[
        float | None, typer.Option(help="Time limit of the training, in minutes.", min=0.1)
    ] = None,
    device: Device = None,
    seed: Annotated[int, typer.Option(help="Random seed of the training.")] = 7,
) -> None:
    """Train a small re-ranker to rank as a larger one does, on queries without judgments.

    The queries may be a query log, or generated ones. Of the documents that the first stage
    retrieves, the teacher scores those that the student ranks highest and as many others; the
    student learns from its scores. A fifth of the queries is held out, to choose the best weights
    and to measure how far student and teacher agree (Kendall's and Spearman's
    rank correlation).

    OUTPUT/ranker is the student, OUTPUT/agreement.json the account. All stages keep their results
    in OUTPUT/stages, the teacher's scores too; if interrupted, the same command resumes.

    [bold]Example[/bold]

      secondlook distil my.index queries.jsonl --teacher cross-encoder/ms-marco-MiniLM-L12-v2
          -o small
      secondlook distil my.index queries.jsonl --teacher my.ranker --student my.ranker
          --student-layers 6 -o half
      secondlook serve small/ranker --index my.index
    """
    from rich.console import Console

    from secondlook.terminal.bars import Bars
    from secondlook.workflows.distil import distil as run

    result = run(
        index,
        queries,
        output,
        teacher=teacher,
        student=student,
        student_layers=student_layers,
        loss=loss.value,
        pool=pool,
        depth=depth,
        epochs=epochs,
        max_steps=max_steps,
        learning_rate=learning_rate,
        minutes=minutes,
        device=device,
        seed=seed,
        progress=Bars(),
    )
    Console().print(result.table())
    typer.echo(result.conclusion())
