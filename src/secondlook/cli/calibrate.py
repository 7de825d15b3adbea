"""`secondlook calibrate`: turn scores into probabilities, or fit a scale to them."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import ScaleCorpus  # noqa: TC001 - typer reads it

if TYPE_CHECKING:
    from secondlook.model.settings import FittedOn, RankerSettings
    from secondlook.score.calibration import Calibration, Fitted


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
        str | None, typer.Option(help="With --corpus: queries to use instead of document titles.")
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(help="Method: platt fits two parameters; isotonic needs 1,000 pairs or more."),
    ] = Kind.platt,
    relevant_from: Annotated[int, typer.Option(help="Lowest grade that counts as relevant.")] = 1,
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
    from secondlook.cli.progress import busy
    from secondlook.model.checkpoint import open_checkpoint, write_settings

    settings = open_checkpoint(ranker).settings
    if run is not None:
        if qrels is None or corpus is not None:
            raise typer.BadParameter("needs --qrels, and excludes --corpus", param_hint="--run")
        with busy("reading run and judgments"):
            fitted = _by_judgments(settings, run, qrels, kind, relevant_from)
        calibration: Calibration = fitted.calibration
        told, figures = _told(ranker, kind, fitted)
        write_settings(ranker, settings.model_copy(update={"calibration": calibration}))
    else:
        if corpus is None and (queries or qrels):
            raise typer.BadParameter("--qrels needs --run, or --corpus and --queries")
        calibration = _by_texts(ranker, corpus, queries, qrels)
        assert calibration.fitted_on is not None
        told, figures = f"{ranker}: {told_scale(calibration.fitted_on)}", {}
    if as_json:
        assert calibration.fitted_on is not None
        recorded = calibration.fitted_on.model_dump(exclude={"queries"})
        typer.echo(json.dumps(recorded | figures))
        return
    typer.echo(told)


def told_scale(fitted_on: FittedOn) -> str:
    """What a scale without judgments was fitted on."""
    return (
        f"scores from 0 to 1 by {fitted_on.source}: {fitted_on.relevant:,} related and "
        f"{fitted_on.pairs - fitted_on.relevant:,} unrelated pairs\n"
        f"assumed: {fitted_on.assumed}"
    )


def _by_judgments(
    settings: RankerSettings, run: str, qrels: str, kind: Kind, relevant_from: int
) -> Fitted:
    from secondlook.data import read_qrels, read_run, run_tag
    from secondlook.score.calibration import fit_to_judgments, raw_scores_of

    rankings = raw_scores_of(settings, read_run(run), run_tag(run))
    return fit_to_judgments(
        settings, rankings, read_qrels(qrels), kind=kind.value, relevant_from=relevant_from
    )


def _by_texts(
    ranker: Path, corpus: str | None, queries: str | None, qrels: str | None
) -> Calibration:
    from secondlook.cli.progress import Bars
    from secondlook.score.default_scale import store_scale
    from secondlook.score.ranker import Ranker
    from secondlook.workflows.documents import scale_pairs

    pairs = scale_pairs(corpus, queries, qrels, progress=Bars())
    return store_scale(ranker, Ranker.load(ranker), pairs)


def _told(ranker: Path, kind: Kind, fitted: Fitted) -> tuple[str, dict[str, float]]:
    on = fitted.fitted_on
    told = f"{ranker}: {kind} scaling from {on.pairs:,} pairs ({on.relevant:,} relevant)"
    if on.assumed:
        told += f"\nassumed: {on.assumed}"
    told += (
        f"\nexpected calibration error {fitted.error_before:.3f} before, "
        f"{fitted.error_after:.3f} after"
    )
    return told, {"ece_before": fitted.error_before, "ece_after": fitted.error_after}
