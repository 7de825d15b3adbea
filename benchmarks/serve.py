"""How the server fares: throughput, merging of small requests, and twice the load it can bear.

    python benchmarks/serve.py                     64 clients for two minutes
    python benchmarks/serve.py --quick --json      16 clients for a few seconds
    python benchmarks/serve.py -o docs/results     figures and plot into a folder

The ranker is that of benchmarks/rerank.py: all-MiniLM-L6-v2 with a head drawn at random, OpenVINO
bf16. Server and clients are processes on the same machine, over loopback. Texts are those of TREC
DL 2019's BM25 top-100; everybody has seen them once before the clock starts. Throughput is measured
in turns with `Ranker.predict` in this process, and each one's best round counts.

Under load, 64 clients each keep a pace that together is twice what the server could score. Every
score of every answer is compared with the one that `predict` gave for that pair.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import psutil

from rerank import SHARED, drawn, machine, quiet, read_pairs, save_cross_encoder
from secondlook import Ranker
from secondlook.score.export import export_ranker

GOALS = {
    "throughput_vs_predict": "at least 0.90",
    "merged_vs_one_at_a_time": "at least 2",
    "server_errors": "0",
    "wrong_or_lost": "0",
    "p99_of_deadline": "at most 1",
    "memory_growth": "at most 0.05",
}
SMALL = 5
SIZES = (5, 10, 20, 50, 100)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="fewer pairs, clients and seconds")
    arguments.add_argument("--json", action="store_true", help="end with one line of JSON")
    arguments.add_argument("--seconds", type=float, help="of the load; 120, or 8 if quick")
    arguments.add_argument("--clients", type=int, help="of the load; 64, or 16 if quick")
    arguments.add_argument("--deadline", type=float, default=5.0)
    arguments.add_argument("-o", "--output", type=Path, help="a folder for figures and plot")
    given = arguments.parse_args()
    quiet()
    pairs = read_pairs(SHARED / "data" / "msmarco-dl")[: 400 if given.quick else 2000]
    seconds = given.seconds or (8.0 if given.quick else 120.0)
    clients = given.clients or (16 if given.quick else 64)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "minilm"
        save_cross_encoder(folder)
        export_ranker(folder, "openvino", "bf16")
        report = measure(folder, pairs, clients, seconds, given.deadline, quick=given.quick)
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
        latencies = report["load"].pop("latencies")
        (given.output / "serve.json").write_text(json.dumps(report, indent=2) + "\n")
        plot(report, latencies, given.output / "serve.svg")
    show(report)
    if given.json:
        print(json.dumps(report["results"]))


def measure(
    folder: Path,
    pairs: list[tuple[str, str]],
    clients: int,
    seconds: float,
    deadline: float,
    *,
    quick: bool,
) -> dict[str, Any]:
    ranker = Ranker.load(folder)
    scores = dict(zip(pairs, ranker.predict(pairs).tolist(), strict=True))
    offline = len(pairs) / timed(lambda: ranker.predict(pairs))
    waiting = max(SIZES[-1], int(0.5 * deadline * offline))  # half a deadline's work
    with server(folder, deadline=deadline, queue=waiting) as (url, process):
        rounds = [throughput(url, ranker, pairs) for _ in range(2 if quick else 3)]
        served = max(one["served"] for one in rounds)
        predicted = max(one["predicted"] for one in rounds)
        small = small_requests(url, ranker, pairs, quick=quick)
        load = Load(url, pairs, scores, clients, 2 * served, seconds, deadline)
        memory = watch_memory(process, lambda: asyncio.run(load.run()))
    settled = memory[len(memory) // 4 :]
    p99 = float(np.percentile(load.latencies, 99))
    return {
        "machine": machine(),
        "throughput": {"served": served, "predicted": predicted, "rounds": rounds},
        "small": small,
        "load": {
            "clients": clients,
            "seconds": seconds,
            "deadline": deadline,
            "queue": waiting,
            "offered_pairs_per_second": 2 * served,
            "statuses": {str(status): n for status, n in sorted(load.statuses.items())},
            "partial": load.partial,
            "scored_pairs": load.scored,
            "scored_pairs_per_second": load.scored / seconds,
            "p50": float(np.percentile(load.latencies, 50)),
            "p99": p99,
            "memory_mb": [round(one / 2**20) for one in (settled[0], max(settled), settled[-1])],
            "latencies": load.latencies,
        },
        "results": {
            "throughput_vs_predict": served / predicted,
            "merged_vs_one_at_a_time": small["merged"] / small["one_at_a_time"],
            "server_errors": sum(n for status, n in load.statuses.items() if status >= 500),
            "wrong_or_lost": load.wrong + load.lost,
            "p99_of_deadline": p99 / deadline,
            "memory_growth": float(np.mean(settled[-5:]) / np.mean(settled[:5]) - 1),
        },
    }


@contextmanager
def server(folder: Path, **options: float) -> Iterator[tuple[str, psutil.Process]]:
    """Its url, and its process."""
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "secondlook", "serve", str(folder), "--port", "0", *given]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"running on (http://[0-9.:]+)", line):
                break
        else:
            sys.exit("the server did not start")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[1], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def requests(pairs: list[tuple[str, str]], size: int) -> list[dict[str, Any]]:
    """The pairs as requests of at most so many documents of one query."""
    by_query: dict[str, list[str]] = {}
    for query, text in pairs:
        by_query.setdefault(query, []).append(text)
    return [
        {"query": query, "documents": texts[start : start + size]}
        for query, texts in by_query.items()
        for start in range(0, len(texts), size)
    ]


async def ask_all(url: str, bodies: list[dict[str, Any]], at_once: int) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        left = iter(bodies)

        async def ask() -> None:
            for body in left:
                (await client.post(f"{url}/v2/rerank", json=body)).raise_for_status()

        await asyncio.gather(*(ask() for _ in range(at_once)))


def throughput(url: str, ranker: Ranker, pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Pairs/s: eight clients with requests of 50 documents, and `predict` on the same pairs."""
    bodies = requests(pairs, 50)
    served = timed(lambda: asyncio.run(ask_all(url, bodies, 8)))
    predicted = timed(lambda: ranker.predict(pairs))
    return {"served": len(pairs) / served, "predicted": len(pairs) / predicted}


def small_requests(
    url: str, ranker: Ranker, pairs: list[tuple[str, str]], *, quick: bool
) -> dict[str, float]:
    """Requests of five documents per second: one after the other, 32 clients, and offline."""
    bodies = requests(pairs, SMALL)
    few = bodies[: 20 if quick else 100]
    found: dict[str, float] = {"one_at_a_time": 0.0, "merged": 0.0, "predict": 0.0}
    for _ in range(2):
        for name, count in (
            ("one_at_a_time", len(few) / timed(lambda: asyncio.run(ask_all(url, few, 1)))),
            ("merged", len(bodies) / timed(lambda: asyncio.run(ask_all(url, bodies, 32)))),
            (
                "predict",
                len(few)
                / timed(
                    lambda: [
                        ranker.predict([(one["query"], text) for text in one["documents"]])
                        for one in few
                    ]
                ),
            ),
        ):
            found[name] = max(found[name], count)
    return found


@dataclass
class Load:
    """Clients that together ask for more than can be scored."""

    url: str
    pairs: list[tuple[str, str]]
    scores: dict[tuple[str, str], float]
    clients: int
    pairs_per_second: float
    seconds: float
    deadline: float
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    """Of accepted requests, in seconds."""
    partial: int = 0
    scored: int = 0
    wrong: int = 0
    lost: int = 0

    async def run(self) -> None:
        """All clients, to the end."""
        bodies = {size: requests(self.pairs, size) for size in SIZES}
        interval = self.clients * float(np.mean(SIZES)) / self.pairs_per_second
        limits = httpx.Limits(max_connections=self.clients)
        async with httpx.AsyncClient(timeout=4 * self.deadline, limits=limits) as client:
            ends = time.monotonic() + self.seconds
            await asyncio.gather(
                *(
                    self._client(client, bodies, interval, ends, seed)
                    for seed in range(self.clients)
                )
            )

    async def _client(
        self,
        client: httpx.AsyncClient,
        bodies: dict[int, list[dict[str, Any]]],
        interval: float,
        ends: float,
        seed: int,
    ) -> None:
        rng = np.random.default_rng(seed)
        due = time.monotonic() + rng.uniform(0, interval)
        while due < ends:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            some = bodies[int(rng.choice(SIZES))]
            await self._ask(client.post, some[int(rng.integers(len(some)))])
            due = max(due + interval, time.monotonic())

    async def _ask(
        self, post: Callable[..., Awaitable[httpx.Response]], body: dict[str, Any]
    ) -> None:
        began = time.monotonic()
        try:
            answer = await post(f"{self.url}/v2/rerank", json=body)
        except httpx.TransportError:
            self.lost += 1
            return
        self.statuses[answer.status_code] += 1
        if answer.status_code == 200:
            self.latencies.append(time.monotonic() - began)
            self._check(body, answer.json())

    def _check(self, body: dict[str, Any], answer: dict[str, Any]) -> None:
        results, size = answer["results"], len(body["documents"])
        scored = size
        if answer.get("partial"):
            self.partial += 1
            found = re.search(r"partial: (\d+) of", " ".join(answer["meta"]["warnings"]))
            assert found is not None
            scored = int(found[1])
        self.scored += scored
        complete = sorted(one["index"] for one in results) == list(range(size))
        right = all(
            abs(
                one["relevance_score"] - self.scores[body["query"], body["documents"][one["index"]]]
            )
            < 1e-3
            for one in results[:scored]
        )
        self.wrong += not (complete and right)


def watch_memory(process: psutil.Process, work: Callable[[], None]) -> list[int]:
    """The server's resident bytes, four times a second while the work goes on."""
    seen = [process.memory_info().rss]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.25):
            seen.append(process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return seen


def show(report: dict[str, Any]) -> None:
    print(json.dumps(report["machine"]))
    print("throughput, pairs/s:", json.dumps(report["throughput"]))
    print("requests of five documents, per second:", json.dumps(report["small"]))
    load = {name: value for name, value in report["load"].items() if name != "latencies"}
    print("load:", json.dumps(load))
    for name, result in report["results"].items():
        print(f"{name:28} {result:8.3f}  (goal: {GOALS[name]})")


def plot(report: dict[str, Any], latencies: list[float], path: Path) -> None:
    """The share of accepted requests that were answered within so many seconds."""
    load = report["load"]
    red, end = "#c0392b", load["deadline"]
    with drawn(path, 4) as axes:
        axes.ecdf(latencies, color="#1b6ca8")
        axes.axvline(end, color=red, linestyle="--")
        axes.annotate("deadline", (end, 0.05), color=red, ha="right", rotation=90)
        for share in ("p50", "p99"):
            said = f"{share} {load[share]:.2f} s"
            axes.axvline(load[share], color="#b8c4ce", linewidth=1)
            axes.annotate(said, (load[share], 0.5), ha="right", rotation=90)
        axes.set_xlim(left=0)
        axes.set_xlabel("seconds from request to answer, of requests that were accepted")
        axes.set_ylabel("share answered")
        axes.set_title(
            f"{load['clients']} clients at twice capacity for {load['seconds']:.0f} s, "
            f"{report['machine']['cores']} cores"
        )


if __name__ == "__main__":
    main()
