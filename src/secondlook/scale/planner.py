"""How many machines a demand takes, by simulating what its requests would wait."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil, log2
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import SecondlookError
from secondlook.scale.prices import HOURS_A_MONTH, Machine, Prices
from secondlook.scale.queueing import Scoring, fleet, poisson, pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from secondlook.scale.bench import Bench, Engine, FirstLook
    from secondlook.scale.queueing import Times
    from secondlook.scale.vector_costs import VectorCosts

CHUNK_SECONDS, CHUNK_TOKENS = 0.25, 4096
"""What the server of `serve/queue.py` fills a chunk with."""

COPIES = 2
"""Of each shard, so that a node may fail."""

_REQUESTS = 4000
_WARM = _REQUESTS // 10  # the first find empty queues
_SIMULATED_SERVERS = 16
"""A larger fleet is simulated by so many of its servers and their share of the requests: that many
together wait hardly longer than all would, and never less."""

_FULLEST = 0.95
"""Busier than that no machine is planned: so few requests would not show how long queues grow."""

_FOR_THE_INDEX = 0.5
"""Of a node's memory: Lucene wants its files in the page cache, the heap takes the other half."""

_FIRST_LOOK_SHARE = 0.5
"""Of the p99 that the first stage may take."""

_EXPAND_PASSES = 40
"""Generating queries for a passage, against scoring it once: a guess, for nothing was measured."""

_TRAIN_PASSES = 3
"""A step forward and back costs three times the way forward: twice as many products go back."""


class Infeasible(SecondlookError):
    """No machine of the list answers in time, however many there are."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of the system."""

    qps: float
    """At the peak."""
    candidates: int
    p99: float
    corpus: int
    length: float = 128.0
    """Tokens of a pair, on average."""
    cached: float = 0.0
    """The share of requests that a cache answers before any look."""
    work: float = 1.0
    """What a pair costs, against scoring it with the ranker: less with a cascade before it."""
    train_pairs: int = 15_000_000
    """500,000 queries with 6 documents each, 5 times over."""
    vectors: VectorCosts | None = None
    """Of the passages, where the first stage is hybrid."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Machines of one look."""

    machine: str
    machines: int
    cores: float
    memory_gb: float
    monthly: float
    load: float
    """The share of the time that they are busy at the peak."""


@dataclass(frozen=True, slots=True)
class FirstStage(Stage):
    """Those of the first stage."""

    shards: int
    copies: int


@dataclass(frozen=True, slots=True)
class Offline:
    """Hours of one machine of the re-ranking; ten machines take a tenth."""

    weigh: float
    expand: float
    train: float | None
    """None where torch was not measured: other back ends do not train."""
    encode: float | None = None
    """Making a vector of each passage; None where there are none."""
    graphs: float | None = None
    """Linking the vectors, so that they are searched quickly."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What it takes."""

    engine: str
    second: Stage
    first: FirstStage | None
    """None where the first stage was not measured."""
    p50: float
    p99: float
    storage_gb: float | None
    """Of index and vectors, all copies; None where neither is known."""
    vector_memory_gb: float | None
    """Of the vectors' graphs, all copies; None where there are none."""
    storage_monthly: float
    monthly: float
    currency: str
    offline: Offline

    @property
    def cores(self) -> float:
        """Of both stages."""
        return self.second.cores + (self.first.cores if self.first else 0)


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans for one bench and one list of prices; the same demand gives the same plan."""

    bench: Bench
    prices: Prices
    seed: int = 1

    def plan(self, demand: Demand, engine: Engine) -> Plan:
        """The cheapest machines of the list that answer in time. Raises Infeasible."""
        rate = demand.qps * (1 - demand.cached)
        found = self._first_look(demand, rate)
        first, arrivals, between = found if found else (None, *self._unlooked(rate))
        name, servers, spent = self._second_look(demand, engine, rate, arrivals, between)
        machine = self.prices.machines[name]
        scoring = self.scoring(machine, engine, demand)
        second = Stage(
            machine=name,
            machines=servers + 1,
            cores=(servers + 1) * machine.cores,
            memory_gb=(servers + 1) * machine.memory_gb,
            monthly=self._monthly(machine, servers + 1),
            load=rate / scoring.capacity(demand.candidates) / servers,
        )
        storage, memory = self._stored(demand)
        kept = (storage or 0.0) * self.prices.storage_gb_month
        return Plan(
            engine=engine.name,
            second=second,
            first=first,
            p50=float(np.percentile(spent, 50)),
            p99=float(np.percentile(spent, 99)),
            storage_gb=storage,
            vector_memory_gb=memory,
            storage_monthly=kept,
            monthly=second.monthly + (first.monthly if first else 0.0) + kept,
            currency=self.prices.currency,
            offline=self._offline(demand, scoring, machine),
        )

    def _stored(self, demand: Demand) -> tuple[float | None, float | None]:
        """Gigabytes on disk, and of them the vectors' that are to stay in memory."""
        look, vectors, passages = self.bench.first_look, demand.vectors, demand.corpus * COPIES
        disk = passages * look.index_bytes / 1e9 if look else None
        if vectors is None:
            return disk, None
        disk = (disk or 0.0) + passages * vectors.disk_bytes / 1e9
        return disk, passages * vectors.memory_bytes / 1e9

    def scoring(self, machine: Machine, engine: Engine, demand: Demand) -> Scoring:
        """How a server on that machine scores pairs of that length."""
        fixed, pair = engine.costs(demand.length)
        fixed, pair = fixed / machine.speed, pair * demand.work / self._faster(machine)
        tokens = max(CHUNK_TOKENS, CHUNK_SECONDS * demand.length / pair)
        return Scoring(
            fixed,
            pair,
            chunk=max(1, int(tokens / demand.length)),
            jitter=engine.jitter,
            request=self.bench.busy_request_seconds / self._faster(machine),
        )

    @property
    def _overhead(self) -> float:
        """What a request waits for beside all that is simulated."""
        return max(0.0, (self.bench.request_seconds or 0.0) - self.bench.busy_request_seconds)

    def _faster(self, machine: Machine) -> float:
        """All its cores against all of the bench's."""
        more = machine.cores / self.bench.cores
        kept: float = self.prices.core_efficiency ** max(0.0, log2(more))
        return machine.speed * more * kept

    def _unlooked(self, rate: float) -> tuple[Times, Times]:
        arrivals = poisson(rate, _REQUESTS, np.random.default_rng(self.seed))
        return arrivals, np.zeros(_REQUESTS)

    def _second_look(
        self,
        demand: Demand,
        engine: Engine,
        rate: float,
        arrivals: Times,
        between: Times,
    ) -> tuple[str, int, Times]:
        """Machine, how many, and what requests take through both stages."""
        best: tuple[float, str, int, Times] | None = None
        alone = {}
        for name, machine in self.prices.machines.items():
            scoring = self.scoring(machine, engine, demand)
            alone[name] = scoring.alone(demand.candidates) + self._overhead
            fewest = ceil(rate / scoring.capacity(demand.candidates) / _FULLEST)
            if alone[name] > demand.p99:
                continue
            if best and self._monthly(machine, fewest + 1) >= best[0] > 0:
                continue
            spent = partial(self._spent, demand, scoring, arrivals, between)
            servers = _fewest(fewest, _keeps(spent, demand.p99))
            if servers is None:
                continue
            cost = self._monthly(machine, servers + 1)
            if best is None or cost < best[0]:
                best = cost, name, servers, spent(servers)
        if best is None:
            quickest = min(alone, key=lambda name: alone[name])
            raise Infeasible(
                f"no machine answers in {demand.p99 * 1000:,.0f} ms: {demand.candidates} "
                f"candidates of {demand.length:g} tokens alone take {alone[quickest] * 1000:,.0f} "
                f"ms with {engine.name} on {quickest}; take fewer candidates, shorter texts or a "
                "larger machine among the prices, or allow more time"
            )
        return best[1], best[2], best[3]

    def _spent(
        self,
        demand: Demand,
        scoring: Scoring,
        arrivals: Times,
        between: Times,
        servers: int,
    ) -> Times:
        """What requests take that come to the re-ranking `between` after they came at all."""
        some = min(servers, _SIMULATED_SERVERS)
        ready = arrivals * (servers / some) + between
        order = np.argsort(ready, kind="stable")
        done = np.empty(_REQUESTS)
        rng = np.random.default_rng(self.seed + 1)
        done[order] = fleet(ready[order], demand.candidates, scoring, some, rng)
        took: Times = (done - ready + between + self._overhead)[_WARM:]
        return took

    def _first_look(self, demand: Demand, rate: float) -> tuple[FirstStage, Times, Times] | None:
        """The machines, when requests come, and what they take.

        Every query asks every shard, and costs each the same share of what it would cost one index
        of all; a shard's part of a query is the work of one core.
        """
        look = self.bench.first_look
        if look is None:
            return None
        arrivals, _ = self._unlooked(rate)
        rng = np.random.default_rng(self.seed + 2)
        variety = _varied(look.jitter, rng)
        allowed = demand.p99 * _FIRST_LOOK_SHARE
        best: tuple[float, FirstStage, Times] | None = None
        for name, machine in self.prices.machines.items():
            work = self._query_seconds(demand, look) / machine.speed
            shards = ceil(work * float(np.percentile(variety, 99)) / (allowed / 2))
            takes = variety * work / shards
            busy = rate * work / shards / _FULLEST
            spent = partial(_pooled, arrivals, takes)
            cores = _fewest(ceil(busy), _keeps(spent, allowed))
            if cores is None:
                continue
            for_memory = demand.corpus * look.index_bytes * COPIES / 1e9 / _FOR_THE_INDEX
            for_memory += (self._stored(demand)[1] or 0.0) / _FOR_THE_INDEX
            nodes = max(
                COPIES,
                ceil(shards * cores / machine.cores),
                ceil(for_memory / machine.memory_gb),
            )
            stage = FirstStage(
                machine=name,
                machines=nodes,
                cores=nodes * machine.cores,
                memory_gb=nodes * machine.memory_gb,
                monthly=self._monthly(machine, nodes),
                load=rate * work / (nodes * machine.cores),
                shards=shards,
                copies=COPIES,
            )
            if best is None or stage.monthly < best[0]:
                best = stage.monthly, stage, spent(cores)
        if best is None:
            raise Infeasible("the first stage does not keep up on any machine of the list")
        return best[1], arrivals, best[2]

    def _query_seconds(self, demand: Demand, look: FirstLook) -> float:
        """Of one core, for one query over the whole corpus, by words and by vectors."""
        words = demand.corpus * look.query_seconds / look.documents
        if demand.vectors is None:
            return words
        return words + demand.vectors.search_seconds(demand.corpus, demand.candidates)

    def _offline(self, demand: Demand, scoring: Scoring, machine: Machine) -> Offline:
        pair = scoring.pair / demand.work
        torch = [one for one in self.bench.engines if one.name.startswith("torch")]
        trained = None
        if torch:
            seconds = min(one.costs(min(demand.length, one.longest))[1] for one in torch)
            trained = demand.train_pairs * _TRAIN_PASSES * seconds / self._faster(machine) / 3600
        weigh = demand.corpus * pair / 3600
        encode = weigh if demand.vectors else None  # each reads every passage once
        graphs = None
        if demand.vectors:  # one is built by each core
            cores = machine.cores * machine.speed
            graphs = demand.vectors.build_seconds(demand.corpus) / cores / 3600
        expand = weigh * _EXPAND_PASSES
        return Offline(weigh, expand, train=trained, encode=encode, graphs=graphs)

    def _monthly(self, machine: Machine, machines: int) -> float:
        return machine.hourly * HOURS_A_MONTH * machines


def _varied(jitter: float, rng: np.random.Generator) -> Times:
    """What queries cost, of mean 1."""
    if not jitter:
        return np.ones(_REQUESTS)
    return rng.gamma(1 / jitter**2, jitter**2, _REQUESTS)


def _pooled(arrivals: Times, takes: Times, cores: int) -> Times:
    spent: Times = pool(arrivals, takes, cores) - arrivals
    return spent


def _keeps(spent: Callable[[int], Times], p99: float) -> Callable[[int], bool]:
    """Whether so many are enough for that p99."""
    return lambda servers: float(np.percentile(spent(servers), 99)) <= p99


def _fewest(at_least: int, enough: Callable[[int], bool]) -> int | None:
    """The least number that is enough; None where sixty-four times the bound is not."""
    most = 64 * at_least
    low, high = at_least, at_least
    while not enough(high):
        if high >= most:
            return None
        low, high = high + 1, min(most, max(high + 1, ceil(high * 1.5)))
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return high
