"""Machines, latency and cost for a given load."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.errors import WrongArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from secondlook.scale.bench import Bench
    from secondlook.scale.levers import Lever
    from secondlook.scale.planner import Demand, Plan, Stage
    from secondlook.scale.prices import Prices
    from secondlook.scale.vector_costs import VectorCosts


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan, what it was made from, and what would make it cheaper."""

    demand: Demand
    bench: Bench
    prices: Prices
    plan: Plan
    levers: tuple[Lever, ...]

    def to_dict(self) -> dict[str, Any]:
        """All figures, unrounded."""
        bench = self.bench
        return {
            "demand": asdict(self.demand),
            "bench": {"ranker": bench.ranker, "machine": bench.machine, "load": bench.load},
            "prices": self.prices.dated,
            "plan": asdict(self.plan),
            "levers": [asdict(lever) for lever in self.levers],
        }

    def summary(self, *, width: int = 100) -> str:
        """Table, latency, offline work and savings, as plain text."""
        from secondlook.evaluate.tables import as_text

        return as_text(self.tables(), width)

    def tables(self) -> RenderableType:
        """The same for a console of rich."""
        from rich.console import Group
        from rich.text import Text

        savings = [
            Text(f"saves {lever.saved:.0%}: {lever.change}. {lever.check}") for lever in self.levers
        ]
        unknown = [Text(line, style="dim") for line in self._unknown()]
        return Group(self._machines(), *self._figures(), *savings, *unknown)

    def _machines(self) -> Table:
        from rich import box
        from rich.table import Table

        plan = self.plan
        money = f"{plan.currency}/month" if plan.monthly else ""
        table = Table("", "machines", "cores", "memory", "busy", money, box=box.SIMPLE_HEAD)
        if plan.first:
            name = f"first stage, {plan.first.shards} shards x {plan.first.copies}"
            table.add_row(name, *_cells(plan.first, priced=bool(money)))
        table.add_row(f"re-ranking, {plan.engine}", *_cells(plan.second, priced=bool(money)))
        if plan.storage_gb is not None:
            paid = f"{plan.storage_monthly:,.0f}" if money else ""
            table.add_row(f"storage, {plan.storage_gb:,.0f} GB", "", "", "", "", paid)
        if money:
            table.add_row("total", "", f"{plan.cores:,.0f}", "", "", f"{plan.monthly:,.0f}")
        return table

    def _figures(self) -> Iterator[str]:
        plan, offline = self.plan, self.plan.offline
        stages = "both stages" if plan.first else "re-ranking alone"
        yield (
            f"p50 {plan.p50 * 1000:,.0f} ms, p99 {plan.p99 * 1000:,.0f} ms of "
            f"{self.demand.p99 * 1000:,.0f}, {stages}"
        )
        train = "" if offline.train is None else f", train {offline.train:,.0f}"
        encode = "" if offline.encode is None else f", encode {offline.encode:,.0f}"
        encode += "" if offline.graphs is None else f", link vectors {offline.graphs:,.1f}"
        yield (
            f"offline, hours of one {plan.second.machine}: weigh {offline.weigh:,.0f}, "
            f"expand about {offline.expand:,.0f}{train}{encode}"
        )
        vectors = self.demand.vectors
        if vectors is not None and plan.vector_memory_gb is not None:
            yield (
                f"vectors, {vectors.precision}, {vectors.dimension} dimensions: "
                f"{plan.vector_memory_gb:,.1f} GB of memory in all copies"
            )

    def _unknown(self) -> Iterator[str]:
        """What the plan does not know."""
        if any(machine.hourly for machine in self.prices.machines.values()):
            yield f"prices of {self.prices.dated}"
        if self.bench.first_look is None:
            yield (
                "the first stage was not measured, so it is not planned; measure it with: bench "
                "--index"
            )
        if self.demand.vectors is not None:
            yield (
                "the times to search and to link vectors are those of a 2.5 GHz core, not "
                "measured here (docs/scale.md)"
            )
        if self.bench.request_seconds is None:
            yield "the HTTP overhead was not measured; measure it with: bench --url"
        if self.bench.load is not None and self.bench.load > 0.5:
            yield f"the bench ran beside other programs (load {self.bench.load:.1f})"


def plan(
    qps: str | float,
    p99: str,
    corpus: str | float,
    *,
    candidates: int = 100,
    bench: str | Path = "bench.json",
    prices: str | Path | None = None,
    engine: str | None = None,
    length: float = 128.0,
    cached: float = 0.0,
    train_pairs: str | float = "15M",
    vectors: VectorCosts | None = None,
) -> PlanResult:
    """Estimate machines, latency and cost for a load, and what would save most.

    Amounts are numbers or texts such as `2k`, `8.8M` and `1e9`; `p99` is a time with its unit, as
    in `150ms`. `bench` holds the measurements of this machine, `prices` those on offer. With
    `vectors`, the first stage is hybrid: memory, storage, building and searching are counted.
    """
    from secondlook.scale.bench import read_bench
    from secondlook.scale.levers import levers
    from secondlook.scale.planner import Demand, Infeasible, Planner
    from secondlook.scale.prices import read_prices
    from secondlook.scale.quantities import count, number, seconds

    measured = read_bench(Path(bench))
    offers = read_prices(Path(prices)) if prices else _this_machine(measured)
    rate = number(str(qps))
    if rate < 1:
        raise WrongArgument(f"a load of {str(qps)!r} must be at least one query per second")
    allowed, passages = seconds(p99), count(str(corpus))
    if allowed <= 0:
        raise WrongArgument(f"a p99 of {p99!r} must be longer than no time, as in 150ms")
    if passages < 1:
        raise WrongArgument(f"a corpus of {str(corpus)!r} must hold at least one passage")
    demand = Demand(
        rate,
        candidates,
        allowed,
        passages,
        length=length,
        cached=cached,
        train_pairs=count(str(train_pairs)),
        vectors=vectors,
    )
    planner = Planner(measured, offers)
    backend = measured.engine(engine)
    try:
        chosen = planner.plan(demand, backend)
    except Infeasible as problem:
        ways = "; ".join(lever.change for lever in levers(planner, demand, backend, None))
        hint = f". What would meet it: {ways}" if ways else ""
        raise Infeasible(f"{problem}{hint}") from problem
    savings = levers(planner, demand, backend, chosen)
    return PlanResult(demand, measured, offers, chosen, tuple(savings))


def _this_machine(measured: Bench) -> Prices:
    from secondlook.scale.prices import Prices

    this = {"cores": measured.cores, "memory_gb": measured.memory_gb, "hourly": 0}
    return Prices.model_validate({"dated": measured.measured, "machines": {"this machine": this}})


def _cells(stage: Stage, *, priced: bool) -> list[str]:
    return [
        f"{stage.machines:,} {stage.machine}",
        f"{stage.cores:,.0f}",
        f"{stage.memory_gb:,.0f} GB",
        f"{stage.load:.0%}",
        f"{stage.monthly:,.0f}" if priced else "",
    ]
