"""What would make a plan cheaper, and by how much: each lever is pulled alone and planned anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from secondlook.scale.planner import Infeasible
from secondlook.scale.zipf import QueryLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.scale.bench import Engine
    from secondlook.scale.planner import Demand, Plan, Planner

CHEAP, KEPT = 1 / 6, 1 / 5
"""A cascade: a ranker of a sixth of the cost (one layer of six) sees all candidates, this one the
best fifth."""

DISTINCT, EXPONENT, ENTRIES = 50_000_000, 0.83, 1_000_000
"""A query log for the cache's hit rate, and a cache: docs/scale.md has more of both."""


@dataclass(frozen=True, slots=True)
class Lever:
    """A change, and what it leaves to pay."""

    name: str
    change: str
    monthly: float
    cores: float
    saved: float
    """The share of the cost, or of the cores where nothing has a price."""
    p99: float
    check: str
    """How to see what it costs in quality."""


def levers(planner: Planner, demand: Demand, engine: Engine, plan: Plan | None) -> list[Lever]:
    """Those that save something, most first; without a plan, those that make one possible."""
    pulled = []
    for name, change, other, runs, check in _changes(planner, demand, engine):
        try:
            then = planner.plan(other, runs)
        except Infeasible:
            continue
        saved = 0.0
        if plan is not None:
            before, after = (
                (plan.monthly, then.monthly) if plan.monthly else (plan.cores, then.cores)
            )
            saved = 1 - after / before
        if saved > 0 or plan is None:
            pulled.append(Lever(name, change, then.monthly, then.cores, saved, then.p99, check))
    return sorted(pulled, key=lambda lever: (-lever.saved, lever.monthly, lever.cores))


def _changes(
    planner: Planner, demand: Demand, engine: Engine
) -> Iterator[tuple[str, str, Demand, Engine, str]]:
    run = "re-rank so, and `secondlook compare` the runs"
    if demand.candidates > 1:
        fewer = demand.candidates // 2
        yield (
            "depth",
            f"{fewer} candidates instead of {demand.candidates}",
            replace(demand, candidates=fewer),
            engine,
            f"`secondlook rerank --depth {fewer}`, and `secondlook compare`",
        )
        yield (
            "cascade",
            f"a ranker of 1/{1 / CHEAP:.0f} the cost before it keeps the best 1/{1 / KEPT:.0f}",
            replace(demand, work=demand.work * (CHEAP + KEPT)),
            engine,
            "`secondlook rerank --cascade`, and `secondlook compare`",
        )
    yield (
        "shorter",
        f"{demand.length / 2:g} tokens a pair instead of {demand.length:g}",
        replace(demand, length=demand.length / 2),
        engine,
        run,
    )
    for other in planner.bench.engines:
        if other.name != engine.name and other.longest >= demand.length:
            yield "engine", f"{other.name} instead of {engine.name}", demand, other, run
    hits = QueryLog.zipf(DISTINCT, EXPONENT).lru(ENTRIES)
    yield (
        "cache",
        f"answers of {ENTRIES:,} queries kept: {hits:.0%} of requests by Zipf's law",
        replace(demand, cached=demand.cached + (1 - demand.cached) * hits),
        engine,
        "none is lost, but answers are as old as the cache lets them be",
    )
