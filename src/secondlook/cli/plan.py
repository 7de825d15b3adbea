"""`secondlook plan`: estimate machines, latency and cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from secondlook.cli.arguments import VectorPrecision  # noqa: TC001 - typer reads it


def plan(
    qps: Annotated[str, typer.Option(help="Peak load, queries per second, as in 2000 or 2k.")],
    p99: Annotated[
        str, typer.Option(help="Target for the 99th percentile of latency, as in 150ms or 2s.")
    ],
    corpus: Annotated[str, typer.Option(help="Corpus size in passages, as in 1e9 or 8.8M.")],
    candidates: Annotated[int, typer.Option(help="Candidates re-ranked per query.", min=1)] = 100,
    bench: Annotated[Path, typer.Option(help="Measurements from `secondlook bench`.")] = Path(
        "bench.json"
    ),
    prices: Annotated[
        Path | None,
        typer.Option(
            help="Machine types and prices: a TOML file such as examples/prices.toml. Default: the "
            "benchmarked machine, without a price."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Back end and precision, as in 'openvino bf16'; default: the fastest measured."
        ),
    ] = None,
    length: Annotated[
        float, typer.Option(help="Average tokens of a query and passage together.", min=1)
    ] = 128.0,
    cached: Annotated[
        float, typer.Option(help="Share of requests answered from a cache.", min=0, max=0.99)
    ] = 0.0,
    train_pairs: Annotated[
        str, typer.Option(help="Training pairs: queries x documents x epochs.")
    ] = "15M",
    vectors: Annotated[
        VectorPrecision | None,
        typer.Option(help="Count document vectors of this precision, too: fp32, fp16 or int8."),
    ] = None,
    dimension: Annotated[int, typer.Option(help="Of the vectors.", min=1)] = 384,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate machines, latency and cost for a given load, and what would save most.

    Random arrivals, queueing and batched scoring are simulated event by event with the times that
    `secondlook bench` measured, since a 99th percentile cannot be derived from averages. For
    re-ranking, the cheapest fleet that meets --p99 is chosen, plus one machine that may fail. The
    first stage is planned if it was measured (`bench --index`): its shards are small enough for
    the target, with two copies each.

    Assumed, not measured: retrieval time grows linearly with the number of passages; machines
    differ from the benchmarked one in cores, efficiency and speed as given in --prices; expanding
    a passage costs 40 times as much as scoring it, training on a pair 3 times; searching and
    linking vectors takes what it took on one machine (docs/scale.md).

    [bold]Examples[/bold]

      secondlook plan --qps 50 --candidates 50 --p99 1s --corpus 1e6
      secondlook plan --qps 2000 --candidates 100 --p99 150ms --corpus 1e9 --bench bench.json
          --prices examples/prices.toml
      secondlook plan --qps 200 --p99 500ms --corpus 1e8 --vectors int8
    """
    from secondlook.scale.vector_costs import VectorCosts
    from secondlook.workflows.plan import plan as estimate

    result = estimate(
        qps,
        p99,
        corpus,
        candidates=candidates,
        bench=bench,
        prices=prices,
        engine=engine,
        length=length,
        cached=cached,
        train_pairs=train_pairs,
        vectors=VectorCosts(vectors.value, dimension) if vectors else None,
    )
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    from rich.console import Console

    Console().print(result.tables())
