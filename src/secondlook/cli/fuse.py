"""`secondlook fuse`: fusion of first-stage and re-ranking scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import Judgments, QueriesSource  # noqa: TC001 - typer reads them
from secondlook.terminal.help_layout import VerbApp

app = VerbApp(
    name="fuse",
    help="Combine scores: of first stage and re-ranking, or of BM25 and vectors (score fusion).",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command()
def tune(
    ranker: Annotated[Path, typer.Argument(help="Folder of the re-ranker; it is modified.")],
    first: Annotated[str, typer.Option(help="First-stage run.")],
    raw: Annotated[
        str,
        typer.Option(help="The same run with this re-ranker's raw scores, from `rerank --raw`."),
    ],
    qrels: Annotated[str, typer.Option(help="Relevance judgments.")],
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Measure to tune for, in ir-measures notation.")
    ] = "nDCG@10",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of the split into folds.", min=0)] = 0,
    curve: Annotated[
        Path | None, typer.Option(help="Plot the measure over the weight to this .png or .svg.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Only measure; do not modify the re-ranker.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tune the fusion of first-stage and re-ranking scores, and store it with the re-ranker.

    Tries weights of the first-stage score with three normalisations (min-max, z-score, reciprocal
    rank) and, for a re-ranker that reads documents in windows, several poolings. The reported
    figures are cross-validated. A fusion is kept only if it beats both of its inputs by more than
    two standard errors; otherwise the better input is used alone. `rerank`, `search` and `serve`
    then apply what was stored.

    [bold]Examples[/bold]

      secondlook rerank bm25.trec --index my.index --queries queries.jsonl --ranker my.ranker
          --raw -o raw.trec
      secondlook fuse tune my.ranker --first bm25.trec --raw raw.trec --qrels qrels/dev.tsv
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.fuse import tune_fusion

    result = tune_fusion(
        ranker,
        first=first,
        raw=raw,
        qrels=qrels,
        measure=measure,
        folds=folds,
        seed=seed,
        curve=curve,
        dry_run=dry_run,
        progress=Bars(),
    )
    typer.echo(json.dumps(result.to_dict()) if as_json else result.summary())


@app.command()
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
    dry_run: Annotated[bool, typer.Option(help="Only measure; do not modify the index.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tune how an index with vectors is searched: by BM25, by vectors, or by both (hybrid).

    Tries BM25 alone, vectors alone, and both together with many weights and three normalisations.
    Anything but BM25 alone must be better by more than two standard errors. `retrieve`, `search`
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
        dry_run=dry_run,
        progress=Bars(),
    )
    typer.echo(json.dumps(result.to_dict()) if as_json else result.summary())


@app.command()
def clear(
    ranker: Annotated[Path, typer.Argument(help="Folder of the re-ranker; it is modified.")],
) -> None:
    """Remove the stored fusion, so that the re-ranker's scores are used alone.

    [bold]Example[/bold]

      secondlook fuse clear my.ranker
    """
    from secondlook.workflows.fuse import clear_fusion

    clear_fusion(ranker)
    typer.echo(f"{ranker}: fusion removed")
