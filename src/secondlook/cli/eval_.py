"""`secondlook eval`: evaluate runs against relevance judgments."""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Judgments, JudgmentsFormat, RunFormat

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from secondlook.evaluate.measures import Evaluation


def eval_(
    qrels: Judgments,
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Runs to evaluate; the best of several is in bold."),
    ],
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="MEASURE",
            help="Measure, in ir-measures notation: nDCG@10, RR@10, R@100 (the default three), "
            "AP(rel=2)@1000, P@5, Judged@10, … Repeat for more.",
        ),
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Also print the values of each query.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, unrounded.")] = False,
    run_format: RunFormat = "auto",
    qrels_format: JudgmentsFormat = "auto",
) -> None:
    """Evaluate runs against relevance judgments, as trec_eval -c does.

    Ties are broken by document id, descending. Judged queries without results count as zero, and
    the table shows how many there are. A run without results for any judged query is an error.

    [bold]Examples[/bold]

      secondlook eval qrels/test.tsv bm25.trec reranked.trec.gz -m nDCG@10 -m RR@10
      secondlook eval irds:beir/scifact/test run.trec --per-query --json
    """
    from secondlook.data import read_qrels, read_run
    from secondlook.evaluate.measures import DEFAULT_MEASURES, evaluate, require_answers

    judgments = read_qrels(qrels, qrels_format)
    evaluations = {
        run: evaluate(judgments, read_run(run, run_format), measures or DEFAULT_MEASURES)
        for run in runs
    }
    for run, evaluation in evaluations.items():
        require_answers(evaluation, run)
    if as_json:
        typer.echo(json.dumps(_as_json(qrels, evaluations, per_query=per_query), indent=2))
        return

    from rich.console import Console

    console = Console()
    labelled = dict(zip(labels(evaluations), evaluations.values(), strict=True))
    if per_query:
        console.print(_query_table(judgments, labelled))
    console.print(_run_table(labelled))


def labels(runs: Iterable[str]) -> list[str]:
    """The runs by the names of their files, if these tell them apart."""
    paths = list(runs)
    names = [PurePath(path).name for path in paths]
    return names if len(set(names)) == len(names) else paths


def _as_json(qrels: str, evaluations: Mapping[str, "Evaluation"], *, per_query: bool) -> object:
    """What a later comparison of the runs needs: values by measure, then by query."""
    return {
        "qrels": qrels,
        "runs": [
            {
                "run": run,
                "judged": evaluation.judged,
                "missing": evaluation.missing,
                "unjudged": evaluation.unjudged,
                "means": evaluation.means,
                **({"per_query": evaluation.per_query} if per_query else {}),
            }
            for run, evaluation in evaluations.items()
        ],
    }


def _run_table(evaluations: Mapping[str, "Evaluation"]) -> "Table":
    """A row for each run."""
    some = next(iter(evaluations.values()))
    table = _table(["run"], [*some.means, "missing", "unjudged"])
    table.caption = (
        f"{some.judged} judged queries. missing: those without results in the run, counted as "
        "zero. unjudged: queries of the run without judgments, ignored."
    )
    cells = _cells([evaluation.means for evaluation in evaluations.values()])
    for (run, evaluation), values in zip(evaluations.items(), cells, strict=True):
        table.add_row(_name(run), *values, str(evaluation.missing), str(evaluation.unjudged))
    return table


def _query_table(queries: Iterable[str], evaluations: Mapping[str, "Evaluation"]) -> "Table":
    """The rows of a query, one for each run, stand together."""
    several = len(evaluations) > 1
    measures = next(iter(evaluations.values())).means
    table = _table(["query", "run"] if several else ["query"], measures)
    for query in queries:
        cells = _cells(
            [
                {measure: evaluation.per_query[measure][query] for measure in measures}
                for evaluation in evaluations.values()
            ]
        )
        shown = query
        for run, values in zip(evaluations, cells, strict=True):
            table.add_row(_name(shown), *([_name(run)] if several else []), *values)
            shown = ""
        if several:
            table.add_section()
    return table


def _table(names: Iterable[str], numbers: Iterable[str]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, caption_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for number in numbers:
        table.add_column(_name(number), justify="right", no_wrap=True)
    return table


def _cells(runs: list[Mapping[str, float]]) -> "list[list[Text]]":
    """The values of each run, measure by measure; the best in bold, unless all are as good."""
    from rich.text import Text

    rows: list[list[Text]] = [[] for _ in runs]
    for measure in runs[0]:
        values = [run[measure] for run in runs]
        decimals = 0 if measure.startswith("Num") else 4
        for row, value in zip(rows, values, strict=True):
            best = value == max(values) > min(values)
            row.append(Text(f"{value:.{decimals}f}", style="bold" if best else ""))
    return rows


def _name(name: str) -> "Text":
    """A file or query by its name, whatever brackets it holds."""
    from rich.text import Text

    return Text(name)
