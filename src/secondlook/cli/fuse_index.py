"""The verb that chooses how an index with vectors is searched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import Judgments, QueriesSource  # noqa: TC001 - typer reads them


def index(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Index folder with vectors.")],
    queries: QueriesSource,
    qrels: Judgments,
    k: Annotated[int, typer.Option("-k", help="Documents per query that are fused.", min=1)] = 100,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Measure to tune for, in ir-measures notation.")
    ] = "nDCG@10",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of the split into folds.", min=0)] = 0,
    feedback: Annotated[
        bool,
        typer.Option(
            "--feedback",
            help="Also try to move the query's vector towards its nearest documents'.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option(help="Only measure; do not modify the index.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tune how an index with vectors is searched: by BM25, by vectors, or by both (hybrid).

    Tries BM25 alone, vectors alone, and both together with many weights and three normalisations.
    Anything but BM25 alone must be better by more than two standard errors; so must relevance
    feedback (--feedback), which searches by vectors twice for each query. `retrieve`, `search`
    and `serve` then search as the result says, unless told otherwise with --by.

    [bold]Example[/bold]

      secondlook fuse index my.index queries.jsonl qrels/dev.tsv
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.choose_first_stage import choose_first_stage

    result = choose_first_stage(
        folder,
        queries,
        qrels,
        k=k,
        measure=measure,
        folds=folds,
        seed=seed,
        feedback=feedback,
        dry_run=dry_run,
        progress=Bars(),
    )
    typer.echo(json.dumps(result.to_dict()) if as_json else result.summary())
