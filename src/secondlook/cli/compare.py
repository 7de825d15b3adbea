"""`secondlook compare`: significance tests of runs against a baseline."""

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Judgments, JudgmentsFormat, RunFormat
from secondlook.cli.eval_ import labels
from secondlook.evaluate.objections import Reason

if TYPE_CHECKING:
    from collections.abc import Collection

    from rich.table import Table

    from secondlook.evaluate.compare import Comparison, Comparisons

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
    import numpy as np

    from secondlook.data import read_qrels, read_queries, read_run
    from secondlook.evaluate.compare import compare as compare_runs
    from secondlook.evaluate.measures import DEFAULT_MEASURES

    runs = [base, *new]
    (base_name, rankings), *others = zip(
        labels(runs), (read_run(run, run_format) for run in runs), strict=True
    )
    found = compare_runs(
        read_qrels(qrels, qrels_format),
        (base_name, rankings),
        others,
        measures or DEFAULT_MEASURES,
        rng=np.random.default_rng(seed),
        alpha=alpha,
        texts={query.id: query.text for query in read_queries(queries)} if queries else None,
    )
    allowed = allow or ()
    if as_json:
        typer.echo(json.dumps(as_json_of(found, allowed), indent=2))
    else:
        show(found, allowed)
    if require and not found.acceptable(allowed):
        raise typer.Exit(NOT_MET)


def as_json_of(found: "Comparisons", allowed: "Collection[Reason]" = ()) -> object:
    """All figures, for machines."""
    from secondlook.evaluate.verdict import sentence, warnings

    said = asdict(found)
    for run, own in zip(found.runs, said["runs"], strict=True):
        own["verdict"] = run.verdict_allowing(allowed)
        own["acceptable"] = run.acceptable(allowed)
        own["sentence"] = sentence(run, found, allowed)
        for difference, values in zip(run.differences, own["differences"], strict=True):
            values["delta"] = difference.delta
    return said | {"warnings": warnings(found)}


def show(found: "Comparisons", allowed: "Collection[Reason]" = ()) -> None:
    """A table for each run, the verdict under it with what is objected to, and warnings."""
    from rich.console import Console
    from rich.text import Text

    from secondlook.evaluate.verdict import sentence, warnings

    console = Console()
    for run in found.runs:
        console.print(_table(run, found))
        verdict = run.verdict_allowing(allowed)
        style = {"helps": "bold green", "hurts": "bold red"}.get(verdict, "bold yellow")
        said = Text(sentence(run, found, allowed))
        said.stylize(style, 0, len(verdict))
        console.print(said)
        for one in run.objections:
            how = "Allowed" if one.code in allowed else "Objection"
            console.print(Text(f"{how} ({one.code}): {one.sentence}", style="yellow"))
    for warning in warnings(found):
        console.print(Text(f"Warning: {warning}", style="yellow"))


def _table(run: "Comparison", found: "Comparisons") -> "Table":
    """A column for each measure: that fits a narrow terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from secondlook.evaluate.verdict import figure_rows

    copied = f"{run.queries} different of " if run.queries < found.queries else ""
    title = Text(f"{run.run} against {found.base}, {copied}{found.queries} judged queries")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("")
    for one in run.differences:
        table.add_column(Text(one.measure), justify="right", no_wrap=True)
    for name, cells in figure_rows(run, found):
        table.add_row(name, *cells)
    return table
