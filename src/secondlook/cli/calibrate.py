"""`secondlook calibrate`: turn scores into probabilities, or fit a scale to them."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import ScaleCorpus  # noqa: TC001 - typer reads it


class Kind(StrEnum):
    """The map from raw scores to probabilities."""

    platt = "platt"
    isotonic = "isotonic"


def calibrate(
    ranker: Annotated[Path, typer.Argument(help="Folder of the re-ranker; it is modified.")],
    run: Annotated[
        str | None, typer.Option(help="Run with this re-ranker's raw scores, from `rerank --raw`.")
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="Relevance judgments.")] = None,
    corpus: ScaleCorpus = None,
    queries: Annotated[
        str | None, typer.Option(help="With --corpus: queries of unrelated pairs; or all: --qrels.")
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option(help="With --run: platt (default); isotonic from 1,000 pairs on.")
    ] = None,
    relevant_from: Annotated[
        int | None, typer.Option(help="Lowest relevant grade; default: 1.", min=1)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Calibrate a re-ranker's relevance scores and store the calibration with it.

    With --run and --qrels, scores become probabilities of relevance, so that thresholds are
    meaningful. If the judgments list relevant documents only, all other documents of the run count
    as not relevant. The calibration error is measured by 5-fold cross-validation over queries.

    Without judgments, scores are fitted to a scale on which related texts score near 1 and
    unrelated texts near 0: texts of your corpus with --corpus, otherwise the built-in reference
    pairs. Neither the order of documents nor raw scores in runs change.

    [bold]Examples[/bold]

      secondlook calibrate my.ranker --run raw.trec --qrels qrels/dev.tsv
      secondlook calibrate my.ranker --corpus my.index
    """
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.calibrate import calibrate as workflow

    result = workflow(
        ranker,
        run=run,
        qrels=qrels,
        corpus=corpus,
        queries=queries,
        kind=kind.value if kind else None,
        relevant_from=relevant_from,
        progress=Bars(),
    )
    typer.echo(json.dumps(result.to_dict()) if as_json else result.summary())
