"""`secondlook bakeoff`: which re-ranker is best on the user's own queries."""

import json
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import Judgments


def bakeoff(
    qrels: Judgments,
    index: Annotated[Path, typer.Option(help="Index folder: retrieves and holds the texts.")],
    queries: Annotated[str, typer.Option(help="Queries: a file, or irds:NAME.")],
    ranker: Annotated[
        list[str],
        typer.Option(
            help="Re-ranker: a folder, a Hugging Face model id, or the URL of a rerank API; repeat "
            "for more."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML report to write.")],
    run: Annotated[
        str | None, typer.Option(help="Run of candidates. Default: what `retrieve` finds.")
    ] = None,
    depth: Annotated[int, typer.Option(help="Candidates re-ranked per query.", min=1)] = 100,
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="MEASURE",
            help="Measure, in ir-measures notation; the first decides. Default: nDCG@10. Each "
            "further measure costs statistical power.",
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Significance level, over all tests.", min=0.001, max=0.5)
    ] = 0.05,
    machine_price: Annotated[
        float | None,
        typer.Option(help="What this machine costs an hour, for the cost of local ones.", min=0),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, unrounded.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the resampling.", min=0)] = 0,
) -> None:
    """Find out which re-ranker is best on your queries, how surely, how fast and at what price.

    Every re-ranker re-ranks the same candidates, one query at a time. All pairs, the first stage
    among them, are tested by Fisher's randomisation test, Holm-adjusted over all pairs and
    measures. The report has the figures, a plot of quality and latency, and every test.

    A URL is of Cohere's (/v2/rerank), Jina's (/v1/rerank), text-embeddings-inference's (/rerank) or
    vLLM's (/score) API; another path needs its name before it, as in jina+https://host/rerank.
    Behind a # stand the model and other options, such as its price per 1,000 searches or documents.
    The key comes from the environment: CO_API_KEY, JINA_API_KEY, or the variable that key= names.

    Runs and scores are kept: if interrupted, the same command resumes, and paid scores are not
    asked for again.

    [bold]Examples[/bold]

      secondlook bakeoff qrels/test.tsv --index my.index --queries queries.jsonl
          --ranker my.ranker --ranker cross-encoder/ms-marco-MiniLM-L6-v2 -o report.html
      secondlook bakeoff qrels/test.tsv --index my.index --queries queries.jsonl
          --ranker my.ranker --machine-price 0.20 -o report.html
          --ranker https://api.cohere.com/v2/rerank#model=rerank-v3.5,price_per_1000_searches=2
    """
    from rich.console import Console

    from secondlook.terminal.bars import Bars
    from secondlook.workflows.bakeoff import DEFAULT_MEASURE
    from secondlook.workflows.bakeoff import bakeoff as compare_rankers

    result = compare_rankers(
        qrels,
        index,
        queries,
        ranker,
        output,
        run=run,
        depth=depth,
        measures=measures or (DEFAULT_MEASURE,),
        alpha=alpha,
        machine_price=machine_price,
        seed=seed,
        progress=Bars(),
    )
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        Console().print(result.tables())
