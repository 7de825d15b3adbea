"""Whether the planner's simulation tells a real server's p99: at 30, 60 and 90% load.

    python benchmarks/plan.py                      three minutes for each load
    python benchmarks/plan.py --seconds 300 -o docs/results

The ranker is that of benchmarks/rerank.py, on OpenVINO bf16. It is timed as `secondlook bench`
does, and HTTP as `secondlook bench --url` does; then clients ask the server at random moments
(Poisson), each with the same text, 20 times by default, so that all pairs are of one length; the
same moments go through the simulation. A shared machine's speed changes from minute to minute, so
there are rounds, each with all loads, and it is timed anew before each load. All rounds' waits
together give a percentile.

Two predictions stand beside what was measured: from the timing before the load, as a plan is made,
and with the machine's speed in every two seconds of the load, as the server itself counted it
(`secondlook_scoring_seconds`), which leaves out what the machine's moods do and tests the queue
alone. The machine must do nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from bisect import bisect
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from rerank import machine, quiet, save_cross_encoder
from secondlook import Ranker
from secondlook.scale.bench import pair_of, time_ranker, time_server
from secondlook.scale.planner import CHUNK_SECONDS, CHUNK_TOKENS
from secondlook.scale.queueing import Scoring, fleet, poisson
from secondlook.score.export import export_ranker
from serve import server

LOADS = (0.3, 0.6, 0.9)
GOAL = 0.25
SLICE = 2.0  # seconds
SERIES = ("scoring_seconds_total", "chunk_pairs_count", "chunk_pairs_sum")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=180.0, help="for each load")
    arguments.add_argument("--rounds", type=int, default=3, help="that share these seconds")
    arguments.add_argument("--documents", type=int, default=20, help="of a request")
    arguments.add_argument("--length", type=int, default=96, help="tokens of a pair")
    arguments.add_argument("-o", "--output", type=Path, help="a folder for plan.json")
    given = arguments.parse_args()
    quiet()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "minilm"
        save_cross_encoder(folder)
        export_ranker(folder, "openvino", "bf16")
        report = measure(folder, given.documents, given.length, given.seconds, given.rounds)
    if given.output:
        (given.output / "plan.json").write_text(json.dumps(report, indent=2) + "\n")


@dataclass
class Waits:
    """Of all rounds at one load, in seconds; and by what factor scoring was slower than timed."""

    measured: list[float] = field(default_factory=list)
    planned: list[float] = field(default_factory=list)
    at_its_speed: list[float] = field(default_factory=list)
    slower: list[float] = field(default_factory=list)
    scorings: list[dict[str, float]] = field(default_factory=list)

    def row(self, load: float) -> dict[str, Any]:
        """What is reported of it."""
        seen = percentiles(self.measured)
        told = {"planned": self.planned, "at_its_speed": self.at_its_speed}
        row: dict[str, Any] = {"load": load, "requests": len(self.measured), "measured": seen}
        for name, waits in told.items():
            row[name] = expected = percentiles(waits)
            off = expected["p99"] / seen["p99"] - 1
            row |= {f"{name}_p99_off": off, f"{name}_within": abs(off) <= GOAL}
        return row | {"slower_than_timed": self.slower, "scorings": self.scorings}


def percentiles(waits: list[float]) -> dict[str, float]:
    return {f"p{at}": float(np.percentile(waits, at)) for at in (50, 99)}


def measure(
    folder: Path, documents: int, length: int, seconds: float, rounds: int
) -> dict[str, Any]:
    ranker = Ranker.load(folder)
    query, text = pair_of(ranker, length)
    body = {"query": query.text, "documents": [text.text] * documents}
    waits = {load: Waits() for load in LOADS}
    with server(folder, deadline=60, queue=100_000) as (url, _):
        for at, load in product(range(rounds), LOADS):
            scoring, overhead = timed(ranker, url, length, documents)
            rate = load * scoring.capacity(documents)
            requests = max(20, int(rate * seconds / rounds))
            arrivals = poisson(rate, requests, np.random.default_rng(1 + at))
            found = waits[load]
            seen, speeds = asyncio.run(watched(url, body, arrivals, scoring))
            found.measured += seen
            # in the server's own seconds is what HTTP took from scoring, and every chance delay
            own = replace(scoring, jitter=0.0, request=0.0)
            for told, model, slowness in (
                (found.planned, scoring, lambda _: 1.0),
                (found.at_its_speed, own, speeds.slowness),
            ):
                rng = np.random.default_rng(2)
                done = fleet(arrivals, documents, model, 1, rng, slowness)
                told += (done - arrivals + overhead).tolist()
            found.slower.append(speeds.whole)
            found.scorings.append(asdict(scoring) | {"overhead": overhead})
            print(json.dumps(found.row(load)), flush=True)
    return {"machine": machine(), "loads": [found.row(load) for load, found in waits.items()]}


@dataclass
class Speeds:
    """By what factor scoring was slower than timed, in slices of the load."""

    scoring: Scoring
    ends: list[float] = field(default_factory=list)
    counts: list[dict[str, float]] = field(default_factory=list)

    def note(self, moment: float, count: dict[str, float]) -> None:
        """What the server has counted until then."""
        self.ends.append(moment)
        self.counts.append(count)

    def _factor(self, first: int, last: int) -> float:
        seconds, chunks, pairs = (
            self.counts[last][name] - self.counts[first][name] for name in SERIES
        )
        if not chunks:
            return self.whole
        return seconds / (chunks * self.scoring.fixed + pairs * self.scoring.pair)

    @property
    def whole(self) -> float:
        """Over all of the load."""
        return self._factor(0, len(self.counts) - 1)

    def slowness(self, now: float) -> float:
        """In the slice of that moment."""
        at = min(max(1, bisect(self.ends, now)), len(self.ends) - 1)
        return self._factor(at - 1, at)


async def watched(
    url: str, body: dict[str, Any], arrivals: np.ndarray[Any, Any], scoring: Scoring
) -> tuple[list[float], Speeds]:
    """What each request took, and how fast the server was meanwhile."""
    speeds, over = Speeds(scoring), asyncio.Event()
    began = time.monotonic()

    async def look() -> None:
        async with httpx.AsyncClient(verify=False) as client:
            while True:
                ended = over.is_set()
                speeds.note(
                    time.monotonic() - began, counted((await client.get(f"{url}/metrics")).text)
                )
                if ended:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), SLICE)

    watching = asyncio.create_task(look())
    seen = await ask(url, body, arrivals)
    over.set()
    await watching
    return seen, speeds


def counted(text: str) -> dict[str, float]:
    """Seconds of scoring, chunks and pairs, as the server counts them."""
    return {
        name: sum(map(float, re.findall(rf"^secondlook_{name}(?:{{.*}})? (\S+)$", text, re.M)))
        for name in SERIES
    }


def timed(ranker: Ranker, url: str, length: int, documents: int) -> tuple[Scoring, float]:
    """How the server scores now, and what HTTP adds to a request's wait."""
    engine = time_ranker(ranker, "openvino bf16", lengths=[length])
    read = min(timing.length for timing in engine.timings)
    fixed, pair = engine.costs(read)
    chunk = int(max(CHUNK_TOKENS, CHUNK_SECONDS * read / pair) / read)
    query, text = pair_of(ranker, length)

    def at_once(requests: int, size: int) -> None:
        body = {"query": query.text, "documents": [text.text] * size}
        asyncio.run(ask(url, body, np.zeros(requests)))

    alone, busy = time_server(at_once, ranker, (query, text), documents)
    scoring = Scoring(fixed, pair, chunk, jitter=engine.jitter, request=busy)
    return scoring, max(0.0, alone - busy)


async def ask(url: str, body: dict[str, Any], moments: np.ndarray[Any, Any]) -> list[float]:
    """What each request took, sent at its moment whether or not the others are answered."""
    limits = httpx.Limits(max_connections=None)
    # there is no TLS here, and reading certificates would count as the first request's time
    async with httpx.AsyncClient(timeout=120, limits=limits, verify=False) as client:
        began = time.monotonic()

        async def one(at: float) -> float:
            await asyncio.sleep(max(0.0, began + at - time.monotonic()))
            sent = time.monotonic()
            (await client.post(f"{url}/v2/rerank", json=body)).raise_for_status()
            return time.monotonic() - sent

        return list(await asyncio.gather(*(one(at) for at in moments.tolist())))


if __name__ == "__main__":
    main()
