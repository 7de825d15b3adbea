"""`secondlook plan`: estimate machines, latency and cost."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from secondlook.scale.bench import Bench
    from secondlook.scale.levers import Lever
    from secondlook.scale.plan import Demand, Plan, Stage
    from secondlook.scale.prices import Prices


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
    a passage costs 40 times as much as scoring it, training on a pair 3 times.

    [bold]Examples[/bold]

      secondlook plan --qps 50 --candidates 50 --p99 1s --corpus 1e6
      secondlook plan --qps 2000 --candidates 100 --p99 150ms --corpus 1e9 --bench bench.json
          --prices examples/prices.toml
    """
    from secondlook.scale.bench import read_bench
    from secondlook.scale.levers import levers
    from secondlook.scale.plan import Demand, Infeasible, Planner
    from secondlook.scale.prices import read_prices
    from secondlook.scale.quantities import count, seconds

    measured = read_bench(bench)
    offers = read_prices(prices) if prices else _this_machine(measured)
    rate = count(qps)
    if rate < 1:
        raise SecondlookError(f"--qps {qps!r} must be at least one query per second")
    demand = Demand(
        rate,
        candidates,
        seconds(p99),
        count(corpus),
        length=length,
        cached=cached,
        train_pairs=count(train_pairs),
    )
    planner = Planner(measured, offers)
    runs = measured.engine(engine)
    try:
        made = planner.plan(demand, runs)
    except Infeasible as problem:
        ways = "; ".join(lever.change for lever in levers(planner, demand, runs, None))
        hint = f". What would meet it: {ways}" if ways else ""
        raise Infeasible(f"{problem}{hint}") from problem
    pulled = levers(planner, demand, runs, made)
    if as_json:
        typer.echo(json.dumps(_as_json(demand, measured, offers, made, pulled), indent=2))
    else:
        _show(demand, measured, offers, made, pulled)


def _this_machine(measured: Bench) -> Prices:
    from secondlook.scale.prices import Prices

    this = {"cores": measured.cores, "memory_gb": measured.memory_gb, "hourly": 0}
    return Prices.model_validate({"dated": measured.measured, "machines": {"this machine": this}})


def _as_json(
    demand: Demand, measured: Bench, offers: Prices, made: Plan, pulled: list[Lever]
) -> dict[str, Any]:
    return {
        "demand": asdict(demand),
        "bench": {"ranker": measured.ranker, "machine": measured.machine, "load": measured.load},
        "prices": offers.dated,
        "plan": asdict(made),
        "levers": [asdict(lever) for lever in pulled],
    }


def _show(demand: Demand, measured: Bench, offers: Prices, made: Plan, pulled: list[Lever]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    money = f"{made.currency}/month" if made.monthly else ""
    table = Table("", "machines", "cores", "memory", "busy", money, box=box.SIMPLE_HEAD)
    if made.first:
        name = f"first stage, {made.first.shards} shards x {made.first.copies}"
        table.add_row(name, *_cells(made.first, priced=bool(money)))
    table.add_row(f"re-ranking, {made.engine}", *_cells(made.second, priced=bool(money)))
    if made.storage_gb is not None:
        paid = f"{made.storage_monthly:,.0f}" if money else ""
        table.add_row(f"storage, {made.storage_gb:,.0f} GB", "", "", "", "", paid)
    if money:
        table.add_row("total", "", f"{made.cores:,.0f}", "", "", f"{made.monthly:,.0f}")
    console.print(table)
    looks = "both stages" if made.first else "re-ranking alone"
    console.print(
        f"p50 {made.p50 * 1000:,.0f} ms, p99 {made.p99 * 1000:,.0f} ms of "
        f"{demand.p99 * 1000:,.0f}, {looks}"
    )
    train = "" if made.offline.train is None else f", train {made.offline.train:,.0f}"
    console.print(
        f"offline, hours of one {made.second.machine}: weigh {made.offline.weigh:,.0f}, "
        f"expand about {made.offline.expand:,.0f}{train}"
    )
    for lever in pulled:
        console.print(f"saves {lever.saved:.0%}: {lever.change}. {lever.check}", highlight=False)
    for missing in _missing(measured, offers):
        console.print(missing, style="dim", highlight=False)


def _cells(stage: Stage, *, priced: bool) -> list[str]:
    return [
        f"{stage.machines:,} {stage.machine}",
        f"{stage.cores:,.0f}",
        f"{stage.memory_gb:,.0f} GB",
        f"{stage.load:.0%}",
        f"{stage.monthly:,.0f}" if priced else "",
    ]


def _missing(measured: Bench, offers: Prices) -> list[str]:
    """What the plan does not know."""
    said = [f"prices of {offers.dated}"] if any(m.hourly for m in offers.machines.values()) else []
    if measured.first_look is None:
        said.append(
            "the first stage was not measured, so it is not planned; measure it with: bench --index"
        )
    if measured.request_seconds is None:
        said.append("the HTTP overhead was not measured; measure it with: bench --url")
    if measured.load is not None and measured.load > 0.5:
        said.append(f"the bench ran beside other programs (load {measured.load:.1f})")
    return said
