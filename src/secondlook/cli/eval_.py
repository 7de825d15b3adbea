"""`secondlook eval`: evaluate runs against relevance judgments."""

import json
from typing import Annotated

import typer

from secondlook.cli.arguments import Judgments, JudgmentsFormat, RunFormat


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
    from secondlook.evaluate.evaluation import DEFAULT_MEASURES
    from secondlook.workflows.evaluate import evaluate_runs

    evaluations = evaluate_runs(
        qrels,
        runs,
        measures=measures or DEFAULT_MEASURES,
        run_format=run_format,
        qrels_format=qrels_format,
    )
    if as_json:
        typer.echo(json.dumps(evaluations.to_dict(per_query=per_query), indent=2))
        return

    from rich.console import Console

    Console().print(evaluations.tables(per_query=per_query))
