"""`secondlook compare`: whether a new run helps, hurts, or nobody can tell."""

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Judgments, JudgmentsFormat, RunFormat
from secondlook.cli.eval_ import labels

if TYPE_CHECKING:
    from rich.table import Table

    from secondlook.evaluate.compare import Comparison, Comparisons

NOT_MET = 3
"""The exit code where what was required is not so; 1 is an error, 2 a misuse."""


class Requirement(StrEnum):
    """What a release may depend on."""

    helps = "helps"


def compare(
    qrels: Judgments,
    base: Annotated[str, typer.Argument(metavar="BASE_RUN", help="The run you have now.")],
    new: Annotated[list[str], typer.Argument(metavar="NEW_RUN", help="Runs to compare with it.")],
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="MEASURE",
            help="As ir-measures spells it; nDCG@10, RR@10 and R@100 if none is given. Each one "
            "more makes all of them harder to tell: name those you decide by.",
        ),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(
            help="The risk of a false alarm, over all runs and measures.", min=0.001, max=0.5
        ),
    ] = 0.05,
    require: Annotated[
        Requirement | None,
        typer.Option(help="Exit with 3 unless the verdict on every new run is this one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, unrounded.")] = False,
    run_format: RunFormat = "auto",
    qrels_format: JudgmentsFormat = "auto",
    seed: Annotated[int, typer.Option(help="Of the resampling.", min=0)] = 0,
) -> None:
    """Tell whether new runs help, hurt, or whether nobody can tell yet.

    A difference counts where Fisher's randomisation test finds it, corrected (Holm) for every
    measure and run in the table. Harm in one measure outweighs help in others. Where it cannot be
    told, you learn how many more judged queries would tell.

    [bold]Examples[/bold]

      secondlook compare qrels/test.tsv bm25.trec reranked.trec -m nDCG@10

      secondlook compare qrels/test.tsv live.trec candidate.trec --require helps || exit 1
    """
    import numpy as np

    from secondlook.data import read_qrels, read_run
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
    )
    if as_json:
        typer.echo(json.dumps(as_json_of(found), indent=2))
    else:
        show(found)
    if require and any(run.verdict != require for run in found.runs):
        raise typer.Exit(NOT_MET)


def as_json_of(found: "Comparisons") -> object:
    """All figures, for machines."""
    from secondlook.evaluate.verdict import sentence, warnings

    said = asdict(found)
    for run, own in zip(found.runs, said["runs"], strict=True):
        own["verdict"] = run.verdict
        own["sentence"] = sentence(run, found)
        for difference, values in zip(run.differences, own["differences"], strict=True):
            values["delta"] = difference.delta
    return said | {"warnings": warnings(found)}


def show(found: "Comparisons") -> None:
    """A table for each run, the verdict under it, and what to beware of."""
    from rich.console import Console
    from rich.text import Text

    from secondlook.evaluate.verdict import sentence, warnings

    console = Console()
    for run in found.runs:
        console.print(_table(run, found))
        style = {"helps": "bold green", "hurts": "bold red"}.get(run.verdict, "bold yellow")
        said = Text(sentence(run, found))
        said.stylize(style, 0, len(run.verdict))
        console.print(said)
    for warning in warnings(found):
        console.print(Text(f"Beware: {warning}", style="yellow"))


def _table(run: "Comparison", found: "Comparisons") -> "Table":
    """A column for each measure: that fits a narrow terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from secondlook.evaluate.verdict import figure_rows

    title = Text(f"{run.run} against {found.base}, {found.queries} judged queries")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("")
    for one in run.differences:
        table.add_column(Text(one.measure), justify="right", no_wrap=True)
    for name, cells in figure_rows(run, found):
        table.add_row(name, *cells)
    return table
