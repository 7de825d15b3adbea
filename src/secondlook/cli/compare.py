"""`secondlook compare`: significance tests of runs against a baseline."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from secondlook.cli.arguments import Judgments, JudgmentsFormat, RunFormat
from secondlook.evaluate.objections import Reason

NOT_MET = 3
"""The exit code where what was required is not so; 1 is an error, 2 a misuse."""


class Requirement(StrEnum):
    """What a release may depend on."""

    helps = "helps"


def compare(
    qrels: Judgments,
    base: Annotated[str, typer.Argument(metavar="BASE_RUN", help="Baseline run.")],
    new: Annotated[
        list[str], typer.Argument(metavar="NEW_RUN", help="Runs to compare with the baseline.")
    ],
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="MEASURE",
            help="Measure, in ir-measures notation; default: nDCG@10, RR@10 and R@100. Each "
            "further measure costs statistical power: name only those you decide by.",
        ),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(
            help="Significance level, over all runs and measures together.", min=0.001, max=0.5
        ),
    ] = 0.05,
    require: Annotated[
        Requirement | None,
        typer.Option(
            help="Exit with code 3 unless every new run has this verdict and there are no "
            "objections."
        ),
    ] = None,
    allow: Annotated[
        list[Reason] | None,
        typer.Option(
            help="Accept the verdict despite this objection: duplicated queries, tied scores that "
            "decide it, queries without results in a run, fewer than 25 judged queries, or an "
            "alpha above .1. Repeat for more.",
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            help="Queries: a file, or irds:NAME. Queries with the same text count as one; without "
            "this option, duplicates are detected by their judgments and results alone."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, unrounded.")] = False,
    run_format: RunFormat = "auto",
    qrels_format: JudgmentsFormat = "auto",
    seed: Annotated[int, typer.Option(help="Random seed of the resampling.", min=0)] = 0,
) -> None:
    """Test whether runs are significantly better or worse than a baseline.

    Differences are tested with Fisher's randomisation test, Holm-adjusted over all measures and
    runs in the table. A run that is significantly worse in one measure is judged worse, even if it
    is better in others. Where a difference is not significant, the number of further judged
    queries that would probably settle it is estimated.

    Objections are reasons not to rely on a verdict; --require fails on them unless you --allow
    them.

    [bold]Examples[/bold]

      secondlook compare qrels/test.tsv bm25.trec reranked.trec -m nDCG@10
      secondlook compare qrels/test.tsv live.trec candidate.trec --require helps || exit 1
    """
    from rich.console import Console

    from secondlook.evaluate.evaluation import DEFAULT_MEASURES
    from secondlook.workflows.compare import compare as test_runs

    comparisons = test_runs(
        qrels,
        base,
        *new,
        measures=measures or DEFAULT_MEASURES,
        alpha=alpha,
        queries=queries,
        seed=seed,
        run_format=run_format,
        qrels_format=qrels_format,
    )
    allowed = allow or ()
    if as_json:
        typer.echo(json.dumps(comparisons.to_dict(allowed), indent=2))
    else:
        Console().print(comparisons.tables(allowed))
    if require and not comparisons.acceptable(allowed):
        raise typer.Exit(NOT_MET)
