"""Whether the planner's simulation tells a real server's p99: at 30, 60 and 90% load.

    python benchmarks/plan.py                      a minute for each load
    python benchmarks/plan.py --seconds 300 -o docs/results

The ranker is that of benchmarks/rerank.py, on OpenVINO bf16. It is timed as `secondlook bench`
does, and HTTP as `secondlook bench --url` does; then clients ask the server at random moments
(Poisson), each with the same text, 20 times by default, so that all pairs are of one length; the
same moments go through the simulation. The machine's speed changes from minute to minute, so it is
timed anew before each load. The machine must do nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from rerank import machine, quiet, save_cross_encoder
from secondlook import Ranker
from secondlook.scale.bench import pair_of, time_ranker, time_server
from secondlook.scale.plan import CHUNK_SECONDS, CHUNK_TOKENS
from secondlook.scale.queueing import Scoring, fleet, poisson
from secondlook.score.export import export_ranker
from serve import server

LOADS = (0.3, 0.6, 0.9)
GOAL = 0.25


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=60.0, help="for each load")
    arguments.add_argument("--documents", type=int, default=20, help="of a request")
    arguments.add_argument("--length", type=int, default=96, help="tokens of a pair")
    arguments.add_argument("-o", "--output", type=Path, help="a folder for plan.json")
    given = arguments.parse_args()
    quiet()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "minilm"
        save_cross_encoder(folder)
        export_ranker(folder, "openvino", "bf16")
        report = measure(folder, given.documents, given.length, given.seconds)
    for row in report["loads"]:
        print(json.dumps(row))
    if given.output:
        (given.output / "plan.json").write_text(json.dumps(report, indent=2) + "\n")


def measure(folder: Path, documents: int, length: int, seconds: float) -> dict[str, Any]:
    ranker = Ranker.load(folder)
    query, text = pair_of(ranker, length)
    body = {"query": query.text, "documents": [text.text] * documents}
    rows = []
    with server(folder, deadline=60, queue=100_000) as (url, _):
        for load in LOADS:
            scoring, overhead = timed(ranker, url, length, documents)
            rate = load * scoring.capacity(documents)
            arrivals = poisson(rate, max(50, int(rate * seconds)), np.random.default_rng(1))
            seen = asyncio.run(ask(url, body, arrivals))
            told = fleet(arrivals, documents, scoring, 1, np.random.default_rng(2)) - arrivals
            found, expected = (
                {f"p{at}": float(np.percentile(some, at)) for at in (50, 99)}
                for some in (np.array(seen), told + overhead)
            )
            off = expected["p99"] / found["p99"] - 1
            rows.append(
                {
                    "load": load,
                    "requests": len(arrivals),
                    "measured": found,
                    "simulated": expected,
                    "p99_off": off,
                    "within": abs(off) <= GOAL,
                    "scoring": asdict(scoring),
                    "overhead": overhead,
                }
            )
    return {
        "machine": machine(),
        "loads": rows,
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
