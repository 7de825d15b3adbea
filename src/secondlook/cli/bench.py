"""`secondlook bench`: how fast a re-ranker is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secondlook.cli.arguments import Backend, Precision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.scale.bench import Bench, Engine, FirstLook


_DOCUMENTS = 20  # of a request that a server is timed with


def bench(
    ranker: Annotated[str, typer.Argument(help="Re-ranker: a folder or a Hugging Face model id.")],
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
        Path | None, typer.Option(help="Index folder: time first-stage retrieval, too.")
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

    [bold]Examples[/bold]

      secondlook bench my.ranker
      secondlook bench my.ranker --engine 'openvino bf16' --engine 'torch fp32'
          --index my.index --queries queries.jsonl -o bench.json
    """
    import os
    from datetime import UTC, datetime

    from secondlook.cli.doctor import memory, processor
    from secondlook.data.durable import write_at_once
    from secondlook.model.checkpoint import base_name, locate
    from secondlook.scale.bench import Bench
    from secondlook.score.cores import CGROUP, threads

    if (index is None) != (queries is None):
        raise typer.BadParameter("give both options or neither", param_hint="--index, --queries")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    folder = locate(ranker)
    cpuinfo = Path("/proc/cpuinfo")
    alone, busy = _requests(folder, url) if url else (None, 0.0)
    made = Bench(
        ranker=base_name(ranker),
        machine=processor(cpuinfo.read_text("utf-8") if cpuinfo.is_file() else "")["name"],
        cores=threads(),
        memory_gb=(memory(CGROUP)["usable"] or 0) / 1e9 or 1.0,
        load=load,
        measured=datetime.now(UTC).date().isoformat(),
        ranker_bytes=_bytes(folder),
        engines=tuple(_engines(folder, engine or [])),
        request_seconds=alone,
        busy_request_seconds=busy,
        first_look=_first_look(index, queries, depth) if index and queries else None,
    )
    text = made.model_dump_json(indent=2) + "\n"
    write_at_once(output, text)
    if as_json:
        typer.echo(text, nl=False)
    else:
        _show(made, output)


def _engines(folder: Path, asked: list[str]) -> Iterator[Engine]:
    from secondlook.cli.progress import progress
    from secondlook.scale.bench import LENGTHS, SIZES, time_ranker
    from secondlook.score.exports import FASTEST_FIRST, Export
    from secondlook.score.ranker import Ranker

    there = [" ".join(kind) for kind in FASTEST_FIRST if Export(folder, *kind).is_there()]
    for name in asked or there or ["torch fp32"]:
        backend, precision = _kind(name)
        ranker = Ranker.load(folder, backend=backend.value, precision=precision.value)
        with progress(f"timing {name}", "sizes", len(LENGTHS) * len(SIZES)) as advance:
            yield time_ranker(ranker, name, advance=advance)


def _kind(name: str) -> tuple[Backend, Precision]:
    try:
        backend, precision = name.split()
        return Backend(backend), Precision(precision)
    except ValueError as error:
        raise typer.BadParameter(
            f"{name!r} is not a back end and a precision, as in 'openvino bf16'",
            param_hint="--engine",
        ) from error


def _requests(folder: Path, url: str) -> tuple[float, float]:
    """Seconds that HTTP adds to a request of one document, and to each of many at once."""
    import json
    import os
    from concurrent.futures import ThreadPoolExecutor
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    from secondlook.errors import EngineProblem
    from secondlook.scale.bench import pair_of, time_server
    from secondlook.score.ranker import Ranker

    ranker = Ranker.load(folder)
    query, document = pair_of(ranker, 64)
    key = os.environ.get("SECONDLOOK_API_KEY")
    headers = {"content-type": "application/json"}
    headers |= {"authorization": f"Bearer {key}"} if key else {}

    def ask_one(documents: int) -> None:
        body = {"query": query.text, "documents": [document.text] * documents}
        request = Request(  # noqa: S310 - the user names the server
            url.rstrip("/") + "/v2/rerank",
            json.dumps(body).encode(),
            headers,
        )
        try:
            with urlopen(request, timeout=60) as answer:  # noqa: S310
                answer.read()
        except HTTPError as refusal:
            refusal.close()
            raise EngineProblem(
                f"{url} refused the request: {refusal}; is it a secondlook server? Its API key is "
                "read from SECONDLOOK_API_KEY"
            ) from refusal
        except URLError as error:
            raise EngineProblem(
                f"{url} did not answer: {error.reason}; is the server running?"
            ) from error

    def ask(requests: int, documents: int) -> None:
        with ThreadPoolExecutor(requests) as pool:
            list(pool.map(ask_one, [documents] * requests))

    return time_server(ask, ranker, (query, document), _DOCUMENTS)


def _first_look(index: Path, queries: str, depth: int) -> FirstLook:
    from itertools import islice

    from secondlook.data import read_queries
    from secondlook.retrieve import open_index
    from secondlook.retrieve.opensearch import OpenSearchIndex
    from secondlook.scale.bench import time_first_look

    engine = open_index(index)
    return time_first_look(
        engine,
        list(islice(read_queries(queries), 100)),
        depth,
        name=f"{engine.card.engine}, the best {depth}",
        documents=engine.card.documents,
        size=engine.stored_bytes() if isinstance(engine, OpenSearchIndex) else _bytes(index),
    )


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _show(made: Bench, output: Path) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    lengths = sorted({timing.length for engine in made.engines for timing in engine.timings})
    table = Table("pairs/s", *(f"{length} tokens" for length in lengths), box=box.SIMPLE_HEAD)
    for engine in made.engines:
        speeds = [
            f"{engine.pairs_per_second(length):,.1f}" if length <= engine.longest else ""
            for length in lengths
        ]
        table.add_row(engine.name, *speeds)
    Console().print(table)
    if made.load is not None and made.load > 0.5:
        typer.echo(
            f"other programs were running (load {made.load:.1f}): the speeds are too low", err=True
        )
    typer.echo(f"{output}: {made.machine}, {made.cores:g} cores")
