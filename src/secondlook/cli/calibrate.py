"""Make a ranker's scores probabilities."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """The map from scores to probabilities."""

    platt = "platt"
    isotonic = "isotonic"


def calibrate(
    ranker: Annotated[Path, typer.Argument(help="The ranker's folder; it is changed.")],
    run: Annotated[str, typer.Option(help="A run of this ranker before it fused.")],
    qrels: Annotated[str, typer.Option(help="The judgments.")],
    kind: Annotated[
        Kind, typer.Option(help="platt has two numbers to fit; isotonic wants 1,000 pairs or more.")
    ] = Kind.platt,
    relevant_from: Annotated[int, typer.Option(help="The lowest grade that is relevant.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print for machines.")] = False,
) -> None:
    """Fit probabilities to a ranker's scores and store the fit in the ranker.

    Users then see, for each document, how likely it is to be relevant, and can set a threshold
    that means something. The order of documents does not change, nor do raw scores in runs.
    The error is measured on queries that the fit has not seen (5 folds over queries).

    [bold]Example[/bold]

      secondlook calibrate my.ranker --run reranked.trec --qrels qrels/dev.tsv
    """
    from secondlook.cli.progress import busy
    from secondlook.data import read_qrels, read_run
    from secondlook.evaluate.calibration import (
        cross_validated,
        expected_calibration_error,
        fit_isotonic,
        fit_platt,
        judged_pairs,
        sigmoid,
    )
    from secondlook.model.checkpoint import open_checkpoint, write_settings
    from secondlook.model.settings import IsotonicCalibration, PlattCalibration

    settings = open_checkpoint(ranker).settings
    with busy("reading run and judgments"):
        pairs = judged_pairs(read_qrels(qrels), read_run(run), relevant_from)
    calibration: PlattCalibration | IsotonicCalibration
    if kind is Kind.platt:
        held_out = cross_validated(pairs, fit_platt)
        platt = fit_platt(pairs.scores, pairs.relevant)
        calibration = PlattCalibration(slope=platt.slope, intercept=platt.intercept)
    else:
        held_out = cross_validated(pairs, fit_isotonic)
        steps = fit_isotonic(pairs.scores, pairs.relevant)
        calibration = IsotonicCalibration(
            scores=tuple(steps.scores.tolist()), probabilities=tuple(steps.probabilities.tolist())
        )
    before = expected_calibration_error(sigmoid(pairs.scores), pairs.relevant)
    after = expected_calibration_error(held_out, pairs.relevant)
    write_settings(ranker, settings.model_copy(update={"calibration": calibration}))
    if as_json:
        figures = {"pairs": len(pairs.scores), "relevant": int(pairs.relevant.sum())}
        typer.echo(json.dumps(figures | {"ece_before": before, "ece_after": after}))
        return
    typer.echo(
        f"{ranker}: {kind} scaling from {len(pairs.scores):,} judged pairs "
        f"({pairs.relevant.sum():,} relevant)\n"
        f"expected calibration error {before:.3f} before (sigmoid), {after:.3f} after"
    )
