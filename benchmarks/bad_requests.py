"""Requests made to stop a server: how long they take, and what other clients notice.

    python benchmarks/bad_requests.py --json

A server (`secondlook serve`, one worker, default limits) gets, one after the other: 15 MB of wrong
items in one valid JSON body, 1,000 connections that never finish their headers, and 60 bodies of
15 MB at once. Another process asks `/health` all the time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import httpx

from rerank import machine, quiet, save_cross_encoder
from secondlook.score.export import export_ranker
from secondlook.serve.limits import Limits
from serve import server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Event

    import psutil

GOALS = {
    "bomb_seconds": "under 1",
    "health_ms_during_bomb": "at most 100",
    "health_over_median_during_bomb": "at most 10 (or 100 ms)",
    "answered_beside_1000_half_open": "all",
    "memory_growth_of_limit_60_bodies": "at most 3 (a body is held as bytes, then as objects)",
}
JSON = {"content-type": "application/json"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    given = parser.parse_args()
    quiet()
    with TemporaryDirectory() as folder:
        ranker = Path(folder) / "ranker"
        save_cross_encoder(ranker)
        export_ranker(ranker, "openvino", "fp32")
        with server(ranker) as (url, process):
            report = {"machine": machine(), "goals": GOALS, "results": measure(url, process)}
    print(json.dumps(report, indent=None if given.json else 2))


def measure(url: str, process: psutil.Process) -> dict[str, Any]:
    with probing(url) as unloaded:
        time.sleep(5)
    median = statistics.median(unloaded)
    bomb = b'{"query":"a","documents":[' + b",".join([b"1"] * 7_500_000) + b"]}"
    with probing(url) as during:
        began = time.perf_counter()
        answers = [post(url, bomb) for _ in range(5)]
        seconds = (time.perf_counter() - began) / 5
        time.sleep(0.5)
    half_open = beside_half_open(url)
    statuses, growth = many_bodies(url, process)
    return {
        "health_ms_unloaded_median": 1000 * median,
        "bomb_seconds": seconds,
        "bomb_statuses": dict(Counter(answers)),
        "health_ms_during_bomb": 1000 * max(during),
        "health_over_median_during_bomb": max(during) / median,
        "answered_beside_1000_half_open": half_open,
        "statuses_60_bodies": statuses,
        "memory_growth_mb_60_bodies": growth / 2**20,
        "memory_growth_of_limit_60_bodies": growth / Limits().bytes_in_flight,
    }


def post(url: str, body: bytes) -> int:
    return httpx.post(f"{url}/v2/rerank", content=body, headers=JSON, timeout=120).status_code


@contextmanager
def probing(url: str) -> Iterator[list[float]]:
    """Seconds of every answer of `/health`, asked by a process of its own; filled at the end."""
    over = multiprocessing.Event()
    receive, send = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_probe, args=(url, over, send))
    process.start()
    receive.recv()  # the first answer was there
    took: list[float] = []
    try:
        yield took
    finally:
        over.set()
        took.extend(receive.recv())
        process.join()


def _probe(url: str, over: Event, send: Any) -> None:
    took = []
    with httpx.Client(timeout=60) as client:
        client.get(f"{url}/health").raise_for_status()
        send.send(None)
        while not over.is_set():
            began = time.perf_counter()
            client.get(f"{url}/health").raise_for_status()
            took.append(time.perf_counter() - began)
            time.sleep(0.01)
    send.send(took)


def beside_half_open(url: str) -> str:
    """How many of 50 requests were answered while 1,000 connections stood open."""
    where = httpx.URL(url)
    opened = []
    for _ in range(1000):
        try:
            connection = socket.create_connection((where.host, where.port or 80), timeout=2)
            connection.sendall(b"POST /v2/rerank HTTP/1.1\r\nHost: loc")
        except OSError:
            continue
        opened.append(connection)
    body = json.dumps({"query": "a", "documents": ["b", "c"]}).encode()
    answered = 0
    for _ in range(50):
        try:
            answered += post(url, body) == 200
        except httpx.TransportError:
            continue
    for connection in opened:
        connection.close()
    return f"{answered} of 50, {len(opened)} connections opened"


def many_bodies(url: str, process: psutil.Process) -> tuple[dict[int | str, int], float]:
    """The answers to 60 large valid bodies sent at once, and the most that memory grew by."""
    body = json.dumps({"query": "a", "documents": ["sea " * 3_750_000]}).encode()
    before = most = process.memory_info().rss
    over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.01):
            most = max(most, process.memory_info().rss)

    def ask(_: int) -> int | str:
        try:
            return post(url, body)
        except httpx.TransportError as error:
            return type(error).__name__

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(60) as pool:
        statuses = Counter(pool.map(ask, range(60)))
    over.set()
    watcher.join()
    return dict(statuses), float(most - before)


if __name__ == "__main__":
    sys.exit(main())
