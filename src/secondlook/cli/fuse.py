"""`secondlook fuse`: fusion of first-stage and re-ranking scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from secondlook.terminal.help_layout import VerbApp

app = VerbApp(
    name="fuse",
    help="Combine scores: of first stage and re-ranking, or of BM25 and vectors (score fusion).",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


ScaleName = Literal["min-max", "z", "ranks", "raw"]


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
    scale: Annotated[
        list[str] | None,
        typer.Option(
            help="Normalisation to try: min-max, z, ranks or raw; repeat for several; default: "
            "min-max and z."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Only measure; do not modify the re-ranker.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tune the fusion of first-stage and re-ranking scores, and store it with the re-ranker.

    Tries weights of the first-stage score with two normalisations (min-max, z-score) and, for a
    re-ranker that reads documents in windows, several poolings. The weight is the mean of the
    best weights over bootstrap samples of the queries (bagging), which works with as few as 40
    queries; if the first stage alone is better, it is used alone. The reported figures are
    cross-validated. `rerank`, `search` and `serve` then apply what was stored.

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
        scales=scale,
        dry_run=dry_run,
        progress=Bars(),
    )
    typer.echo(json.dumps(result.to_dict()) if as_json else result.summary())


@app.command("set")
def set_(
    ranker: Annotated[Path, typer.Argument(help="Folder of the re-ranker; it is modified.")],
    weight: Annotated[float, typer.Option(help="Weight of the first-stage score.", min=0, max=1)],
    scale: Annotated[
        ScaleName, typer.Option(help="Normalisation; raw adds both scores as they are.")
    ] = "min-max",
    window: Annotated[
        int | None, typer.Option(help="Read documents in windows of N words.", min=1)
    ] = None,
    stride: Annotated[
        int | None, typer.Option(help="Words between window starts; default: half a window.", min=1)
    ] = None,
    top: Annotated[
        list[float] | None,
        typer.Option(help="Weight of the best window, of the second best, …; default: best only."),
    ] = None,
) -> None:
    """Store a known fusion with the re-ranker, instead of a tuned one.

    With --window the re-ranker also reads documents in windows; a calibration is removed then.

    [bold]Examples[/bold]

      secondlook fuse set my.ranker --weight 0.8 --scale raw
      secondlook fuse set my.ranker --weight 0.9 --scale raw --window 100 --top 1 --top 1 --top 1
    """
    from secondlook.workflows.fuse import set_fusion, windows_of_words

    if window is None and (stride is not None or top):
        raise typer.BadParameter("--stride and --top are of windows: they need --window N")
    windows = None if window is None else windows_of_words(window, stride, top or ())
    set_fusion(ranker, weight, scale, windows=windows)
    typer.echo(f"{ranker}: {weight:g} first-stage weight, scale {scale}")


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
