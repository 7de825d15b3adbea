"""`secondlook teach`: teacher scores for knowledge distillation."""

from __future__ import annotations

import json
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Replace, refuse_to_overwrite
from secondlook.cli.rerank import Backend, Precision, Watched

if TYPE_CHECKING:
    from secondlook.train.groups import Group

_GROUPS_AT_ONCE = 8  # little to lose by a kill


def teach(
    groups: Annotated[Path, typer.Argument(help="Group file from `secondlook mine`.")],
    teacher: Annotated[
        str,
        typer.Option(
            help="Teacher: a re-ranker or any cross-encoder with one output; a folder or a "
            "Hugging Face model id."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Group file to write (Parquet).")],
    backend: Annotated[
        Backend, typer.Option(help="Inference back end; auto: the fastest export, else torch.")
    ] = Backend.auto,
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
    from secondlook.cli.progress import busy, progress
    from secondlook.data.partial import PartialLines
    from secondlook.model.checkpoint import base_name
    from secondlook.train.groups import Groups, write_groups

    refuse_to_overwrite(output, replace=replace)
    with busy("loading the teacher"):
        given = Groups([groups])
        scorer = Watched(teacher, backend, precision)
    output.parent.mkdir(parents=True, exist_ok=True)
    made = PartialLines(output, {"groups": given.fingerprint, **scorer.made_of})

    def rows(some: list[Group]) -> list[str]:
        pairs = [(group.query, document) for group in some for document in group.documents]
        scores = iter(scorer.score(pairs).tolist())
        return [json.dumps([next(scores) for _ in group.documents]) for group in some]

    with progress("scoring", "queries", len(given)) as advance:
        made.fill(given, rows, _GROUPS_AT_ONCE, advance)
    taught = (
        changed(group, teacher=tuple(json.loads(row)))
        for group, row in zip(given, made.rows(), strict=True)
    )
    count = write_groups(output, taught, about=given.about[0] | {"teacher": base_name(teacher)})
    made.remove()
    typer.echo(f"{output}: {count:,} queries, scored by {base_name(teacher)}: {scorer.cost()}")
