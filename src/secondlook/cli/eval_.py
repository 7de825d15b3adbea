"""`secondlook eval`: evaluate runs against relevance judgments."""

import json
from typing import Annotated, Literal

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
    by: Annotated[
        Literal["length", "type"] | None,
        typer.Option(help="Means by query length or query type, of one measure."),
    ] = None,
    queries: Annotated[str | None, typer.Option(help="Queries; needed with --by.")] = None,
    types: Annotated[
        str | None, typer.Option(help="Classifier file from `types train`, with --by type.")
    ] = None,
    found_in: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="With --by: only queries with a relevant document in this run's top 1000.",
        ),
    ] = None,
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
      secondlook eval qrels.tsv bm25.trec base.trec marked.trec --by length --queries queries.tsv
          -m RR@10 --found-in bm25.trec
    """
    if by is None and (queries or types or found_in):
        raise typer.BadParameter("--queries, --types and --found-in need --by")
    if by is not None:
        if queries is None or per_query or len(measures or ()) > 1:
            raise typer.BadParameter("--by needs --queries, at most one -m and no --per-query")

        from secondlook.workflows.evaluate import evaluate_by

        measure = (measures or ["RR@10"])[0]
        table = evaluate_by(
            qrels,
            runs,
            queries,
            by,
            measure=measure,
            types=types,
            found_in=found_in,
            run_format=run_format,
            qrels_format=qrels_format,
        )
        typer.echo(json.dumps(table.to_dict(), indent=2) if as_json else table.summary())
        return

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
