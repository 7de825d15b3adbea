"""`secondlook rerank`: re-rank a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import RANKER_HELP, Backend, BackendOption, Precision, Ray, Replace


def rerank(
    run: Annotated[str, typer.Argument(help="First-stage run.")],
    index: Annotated[Path, typer.Option(help="Index folder that holds the texts.")],
    queries: Annotated[str, typer.Option(help="Queries: a file, or irds:NAME.")],
    ranker: Annotated[str, typer.Option(help=RANKER_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Run file to write.")],
    depth: Annotated[
        int | None,
        typer.Option(
            help="Re-rank only the top N candidates of each query; the others stay below them in "
            "their old order.",
            min=1,
        ),
    ] = None,
    cascade: Annotated[
        str | None,
        typer.Option(
            metavar="RANKER:KEEP",
            help="Let a cheaper re-ranker choose the KEEP candidates of each query that this one "
            "scores; the others stay below them in their old order.",
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Write raw scores without fusion, one line per window, scored documents only: the "
            "input of `fuse tune` and `calibrate`.",
        ),
    ] = False,
    backend: BackendOption = Backend.auto,
    precision: Annotated[
        Precision,
        typer.Option(
            help="Numeric precision: fp32, bf16 or int8; auto: that of the export, else fp32."
        ),
    ] = Precision.auto,
    stored_vectors: Annotated[
        bool,
        typer.Option(
            "--vectors/--no-vectors",
            help="Score by the vectors of the index where this re-ranker made them and none of its "
            "layers sees both texts, or from states that it stored there; otherwise it reads every "
            "document.",
        ),
    ] = True,
    ray: Ray = None,
    replace: Replace = False,
) -> None:
    """Re-rank a retrieval run with a re-ranker.

    The run file appears when it is complete. If interrupted, the same command resumes. An existing
    run is overwritten only with --replace.

    Truncation, markers, pooling of windows and score fusion are settings of the re-ranker, stored
    with it: there are no options for them here.

    With --ray, single-core workers that see the same folders score parts of the pairs; finished
    parts survive the loss of workers and of this program.

    [bold]Examples[/bold]

      secondlook rerank bm25.trec --index my.index --queries queries.jsonl --ranker my.ranker
          -o reranked.trec
      secondlook rerank bm25.trec --index my.index --queries queries.jsonl --ranker my.ranker
          --cascade small.ranker:100 -o reranked.trec
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.rerank import rerank as run_rerank

    result = run_rerank(
        run,
        index,
        queries,
        ranker,
        output,
        depth=depth,
        cascade=_cascade(cascade),
        raw=raw,
        backend=backend.value,
        precision=precision.value,
        stored_vectors=stored_vectors,
        ray=ray,
        replace=replace,
        progress=Bars(),
    )
    typer.echo(result.summary())


def _cascade(given: str | None) -> tuple[str, int] | None:
    """The cheaper ranker and how many candidates it keeps."""
    if given is None:
        return None
    name, _, keep = given.rpartition(":")
    if not (name and keep.isdecimal() and int(keep)):
        raise typer.BadParameter(f"{given!r} is not RANKER:KEEP, as in small.ranker:100")
    return name, int(keep)
