"""`secondlook bench`: how fast a re-ranker is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import RANKER_HELP

if TYPE_CHECKING:
    from secondlook.scale.bench import Bench


def bench(
    ranker: Annotated[str, typer.Argument(help=RANKER_HELP)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write the measurements to.")
    ] = Path("bench.json"),
    engine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'BACKEND PRECISION'",
            help="Back end and precision, as in 'onnx int8'; repeat for more. Default: every "
            "export of the re-ranker, or torch if it has none.",
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="Index folder: time BM25, too (`plan --vectors` adds vectors)."),
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="Queries for the index; the first hundred are used.")
    ] = None,
    depth: Annotated[int, typer.Option(help="Candidates retrieved per query.", min=1)] = 100,
    url: Annotated[
        str | None,
        typer.Option(
            help="A running `secondlook serve` of this re-ranker: time the HTTP overhead, too. An "
            "API key is read from SECONDLOOK_API_KEY."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Also print the measurements as JSON.")
    ] = False,
) -> None:
    """Measure a re-ranker's speed on this machine, for `secondlook plan`.

    Each back end repeatedly scores batches of 1 to 64 pairs, 32 tokens and longer, from text to
    score. A straight line fitted to the times gives the cost of a batch and of each pair in it;
    the scatter around it is the variation that `plan` simulates. Run nothing else on the machine
    meanwhile; the load average is recorded.

    Of a re-ranker behind a URL, requests of 1, 10 and 50 documents are timed, 16 in all.

    [bold]Examples[/bold]

      secondlook bench my.ranker
      secondlook bench my.ranker --engine 'openvino bf16' --engine 'torch fp32'
          --index my.index --queries queries.jsonl -o bench.json
    """
    from secondlook.scale.remote_bench import RemoteBench
    from secondlook.terminal.bars import Bars
    from secondlook.workflows.bench import bench as run

    measured = run(
        ranker,
        output,
        engine=engine or (),
        index=index,
        queries=queries,
        depth=depth,
        url=url,
        progress=Bars(),
    )
    if as_json:
        typer.echo(measured.to_json(), nl=False)
    elif isinstance(measured, RemoteBench):
        typer.echo(f"{measured.summary()}\n{output}")
    else:
        _show(measured, output)


def _show(measured: Bench, output: Path) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    lengths = sorted({timing.length for engine in measured.engines for timing in engine.timings})
    table = Table("pairs/s", *(f"{length} tokens" for length in lengths), box=box.SIMPLE_HEAD)
    for engine in measured.engines:
        speeds = [
            f"{engine.pairs_per_second(length):,.1f}" if length <= engine.longest else ""
            for length in lengths
        ]
        table.add_row(engine.name, *speeds)
    Console().print(table)
    if measured.load is not None and measured.load > 0.5:
        typer.echo(
            f"other programs were running (load {measured.load:.1f}): the speeds are too low",
            err=True,
        )
    typer.echo(f"{output}: {measured.machine}, {measured.cores:g} cores")
