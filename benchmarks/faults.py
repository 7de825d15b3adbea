"""A server under load while things go wrong: wrong answers, errors, memory, latency.

    python benchmarks/faults.py                       half an hour, two workers, 12 clients
    python benchmarks/faults.py --seconds 120 --json  two minutes, and one line of JSON at the end
    python benchmarks/faults.py --nodes 3             the index on an OpenSearch cluster
    python benchmarks/faults.py --pause 10            clients that leave the server half idle

Clients re-rank (raw scores) and search all the time. Meanwhile, at random: rankers are changed and
reloaded (SIGHUP), the index folder is replaced, a worker is killed (SIGKILL), clients leave early,
read nothing, send half a header, or send malformed requests; with --nodes a node of the cluster is
killed (SIGKILL) and comes back. There are two rankers, which differ in
their head, and two indexes, which differ in their ids: every answer must be that of one ranker and
one index, score for score, as computed offline with the same export (OpenVINO, fp32).

What an answer may be: right; partial, with scores for the first candidates only; 429 or 503 with
`Retry-After` (and 504 of a search). A request under way when a worker is killed may be lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from opensearch_cluster import Cluster
from rerank import SHARED, machine, quiet, read_pairs, save_cross_encoder
from secondlook import Document, Query, Ranker
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings
from secondlook.score.export import export_ranker
from serve import server

GOALS = {
    "wrong_answers": "0",
    "undocumented_errors": "0",
    "lost_without_a_kill": "0",
    "p99_of_deadline": "at most 1.0",
    "memory_growth": "at most 0.05",
}
CLOSE = 1e-3
SHED = (429, 503)
HOSTILE = [
    b'{"query":"a","documents":[' + b"1," * 500_000 + b"1]}",
    b'{"query":"a","documents":[1,1,1]}',
    b'{"query":"a","texts":"a"}',
    b"[" * 5000,
    b'{"query":"\xff"}',
    b"",
]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=1800.0)
    arguments.add_argument("--clients", type=int, default=12)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--deadline", type=float, default=5.0)
    arguments.add_argument("--every", type=float, default=6.0, help="seconds between faults")
    arguments.add_argument(
        "--pause", type=float, default=0.2, help="mean, between two requests of a client"
    )
    arguments.add_argument("--nodes", type=int, default=0, help="of a cluster; 0: index in process")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--json", action="store_true", help="end with one line of JSON")
    arguments.add_argument("-o", "--output", type=Path, help="a file for the report")
    given = arguments.parse_args()
    quiet()
    with (
        TemporaryDirectory() as scratch,
        Cluster(given.nodes) if given.nodes else nullcontext() as cluster,
    ):
        scene = Scene.make(Path(scratch), cluster)
        options = {"deadline": given.deadline, "workers": given.workers, "max-connections": 100}
        with server(scene.ranker, index=scene.index, queue=1024, **options) as (url, process):
            trial = Trial(scene, url, process, given)
            asyncio.run(trial.run())
    report = trial.report()
    for name, value in report["results"].items():
        print(f"{name:24} {value:8.3f}  (goal: {GOALS[name]})")
    print(json.dumps({name: value for name, value in report.items() if name != "results"}))
    if given.output:
        given.output.write_text(json.dumps(report, indent=2) + "\n")
    if given.json:
        print(json.dumps(report["results"]))
    sys.exit(bool(trial.wrong or trial.errors))


@dataclass(frozen=True)
class Scene:
    """Two rankers and two corpora, of which one each is served, and what both rankers say."""

    folder: Path
    queries: list[str]
    texts: list[str]
    scores: list[dict[tuple[str, str], float]]
    """Of each ranker."""
    cluster: Cluster | None = None

    @classmethod
    def make(cls, folder: Path, cluster: Cluster | None) -> Scene:
        """Everything that the server needs, in a folder."""
        by_query: dict[str, list[str]] = {}
        for query, text in read_pairs(SHARED / "data" / "msmarco-dl"):
            by_query.setdefault(query, []).append(text)
        queries = list(by_query)[:8]
        texts = list(dict.fromkeys(text for query in queries for text in by_query[query][:15]))
        pairs = [(query, text) for query in queries for text in texts]
        scores = []
        for number in range(2):
            place = folder / f"ranker{number}"
            save_cross_encoder(place, seed=number)
            export_ranker(place, "openvino", "fp32")
            made = Ranker.load(place, backend="openvino").score(
                [(Query("", query), Document("", text)) for query, text in pairs]
            )
            scores.append(dict(zip(pairs, made.tolist(), strict=True)))
        scene = cls(folder, queries, texts, scores, cluster)
        scene.use_ranker(0)
        scene.use_index(0)
        return scene

    @property
    def ranker(self) -> Path:
        """The one that is served."""
        return self.folder / "ranker"

    @property
    def index(self) -> Path:
        """Likewise."""
        return self.folder / "index"

    def use_ranker(self, number: int) -> None:
        """At once: a link is moved over the old one."""
        new = self.folder / "next"
        new.symlink_to(f"ranker{number}")
        new.replace(self.ranker)

    def use_index(self, number: int) -> None:
        """Replace the folder, as `secondlook index --replace` does."""
        documents = [Document(f"{number}-{at}", text) for at, text in enumerate(self.texts)]
        if self.cluster is None:
            Bm25Index.build(self.index, documents, Bm25Settings())
        else:
            settings = OpenSearchSettings(urls=self.cluster.urls, name="faults", replicas=1)
            OpenSearchIndex.build(self.index, documents, settings)

    def explains(self, query: str, found: dict[str, float]) -> bool:
        """Whether one of the two rankers gave all of these scores."""
        return any(
            all(abs(score - scores[query, text]) < CLOSE for text, score in found.items())
            for scores in self.scores
        )


@dataclass
class Trial:
    """Clients, faults, and what was seen."""

    scene: Scene
    url: str
    process: psutil.Process
    given: argparse.Namespace
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    lost: list[tuple[float, float]] = field(default_factory=list)
    """When a request without an answer began and ended."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why, by the client's words for it."""
    kills: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    partial: int = 0

    async def run(self) -> None:
        """Clients and faults, to the end."""
        await self._until_ready()
        ends = time.monotonic() + self.given.seconds
        rng = np.random.default_rng(self.given.seed)
        async with httpx.AsyncClient(timeout=4 * self.given.deadline) as client:
            await asyncio.gather(
                self._break_things(ends, rng),
                self._watch_memory(ends),
                *(
                    self._ask_on(client, ends, np.random.default_rng([self.given.seed, number]))
                    for number in range(self.given.clients)
                ),
            )

    async def _until_ready(self) -> None:
        async with httpx.AsyncClient() as client:
            while True:
                try:
                    if (await client.get(f"{self.url}/ready")).status_code == 200:
                        return
                except httpx.TransportError:
                    await asyncio.sleep(0.2)

    async def _ask_on(
        self, client: httpx.AsyncClient, ends: float, rng: np.random.Generator
    ) -> None:
        while time.monotonic() < ends:
            query = str(rng.choice(self.scene.queries))
            began = time.monotonic()
            try:
                if rng.random() < 0.5:
                    chosen = rng.permutation(len(self.scene.texts))[: rng.integers(1, 40)]
                    await self._rerank(client, query, [self.scene.texts[at] for at in chosen])
                else:
                    await self._search(client, query, int(rng.integers(5, 50)))
            except httpx.TransportError as error:
                self.lost.append((began, time.monotonic()))
                self.reasons[type(error).__name__] += 1
            await asyncio.sleep(float(rng.exponential(self.given.pause)))

    async def _rerank(self, client: httpx.AsyncClient, query: str, texts: list[str]) -> None:
        asked = {"query": query, "texts": texts, "raw_scores": True}
        answer = await self._post(client, "/rerank", asked)
        if answer is None:
            return
        results = answer.json()
        scores = [one["score"] for one in results]
        places = [one["index"] for one in results]
        whole = sorted(places) == list(range(len(texts))) and scores == sorted(scores, reverse=True)
        scored = len(texts)
        if "x-secondlook-partial" in answer.headers:  # the tail has the lowest score
            self.partial += 1
            sizes = (
                size
                for size in range(len(texts) + 1)
                if places[size:] == sorted(places[size:])
                and sorted(places[:size]) == list(range(size))
            )
            scored = next(sizes, len(texts))
        found = {texts[one["index"]]: one["score"] for one in results[:scored]}
        if not whole or not self.scene.explains(query, found):
            self.wrong.append(f"rerank of {len(texts)}, {scored} scored: {places}")

    async def _search(self, client: httpx.AsyncClient, query: str, depth: int) -> None:
        answer = await self._post(
            client, "/v1/search", {"query": query, "depth": depth, "k": depth}
        )
        if answer is None:
            return
        hits = answer.json()["hits"]
        scored = [hit for hit in hits if hit["raw_score"] is not None]
        self.partial += len(scored) < len(hits)
        found = {hit["text"]: hit["raw_score"] for hit in scored}
        indexes = {hit["id"].partition("-")[0] for hit in hits}
        own = all(self.scene.texts[int(hit["id"].partition("-")[2])] == hit["text"] for hit in hits)
        first = sorted(hit["first_rank"] for hit in scored) == list(range(1, len(scored) + 1))
        above = hits[: len(scored)] == scored
        if not (own and first and above and len(indexes) <= 1) or not self.scene.explains(
            query, found
        ):
            self.wrong.append(f"search of {len(hits)}: {own=} {first=} {above=} {indexes=}")

    async def _post(
        self, client: httpx.AsyncClient, path: str, asked: dict[str, Any]
    ) -> httpx.Response | None:
        """The answer where it is one; anything else is counted."""
        began = time.monotonic()
        answer = await client.post(self.url + path, json=asked)
        self.statuses[f"{path} {answer.status_code}"] += 1
        if answer.status_code == 200:
            self.latencies.append(time.monotonic() - began)
            return answer
        shed = answer.status_code in SHED or (path == "/v1/search" and answer.status_code == 504)
        if not shed or "retry-after" not in answer.headers:
            self.errors.append(f"{path} {answer.status_code} {answer.text[:200]}")
        return None

    async def _break_things(self, ends: float, rng: np.random.Generator) -> None:
        faults = [
            self._reload_rankers,
            self._replace_index,
            self._leave_early,
            self._read_nothing,
            self._half_a_header,
            self._hostile,
        ]
        if self.given.workers > 1:
            faults.append(self._kill_a_worker)
        if self.scene.cluster:
            faults.append(self._kill_a_node)
        while (wait := float(rng.exponential(self.given.every))) < ends - time.monotonic():
            await asyncio.sleep(wait)
            fault = faults[int(rng.integers(len(faults)))]
            self.faults[fault.__name__.strip("_")] += 1
            await fault(rng)

    def _workers(self) -> list[psutil.Process]:
        """The processes that serve; not multiprocessing's own helper."""
        if self.given.workers == 1:
            return [self.process]
        return [
            child
            for child in self.process.children()
            if "resource_tracker" not in " ".join(child.cmdline())
        ]

    async def _reload_rankers(self, rng: np.random.Generator) -> None:
        self.scene.use_ranker(int(rng.integers(2)))
        for worker in self._workers():
            worker.send_signal(signal.SIGHUP)

    async def _replace_index(self, rng: np.random.Generator) -> None:
        await asyncio.to_thread(self.scene.use_index, int(rng.integers(2)))

    async def _kill_a_worker(self, rng: np.random.Generator) -> None:
        workers = self._workers()
        if len(workers) == self.given.workers:  # one must be left
            self.kills.append(time.monotonic())
            workers[int(rng.integers(len(workers)))].kill()
            await asyncio.sleep(15)  # until it is back

    async def _kill_a_node(self, rng: np.random.Generator) -> None:
        cluster = self.scene.cluster
        assert cluster is not None
        node = int(rng.integers(self.given.nodes))
        await asyncio.to_thread(cluster.kill, node)
        await asyncio.sleep(10)
        await asyncio.to_thread(cluster.restart, node)

    async def _leave_early(self, _: np.random.Generator) -> None:
        asked = {"query": self.scene.queries[0], "documents": self.scene.texts[:50]}
        async with httpx.AsyncClient(timeout=0.05) as client:
            for _attempt in range(10):
                try:
                    await client.post(f"{self.url}/v2/rerank", json=asked)
                except httpx.TransportError:
                    continue

    async def _read_nothing(self, _: np.random.Generator) -> None:
        body = json.dumps(
            {"query": "a", "texts": ["s" * 150_000] * 20, "return_text": True}
        ).encode()
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        await self._connected(
            2, b"POST /rerank HTTP/1.1\r\nHost: localhost\r\n", head.encode(), body
        )

    async def _half_a_header(self, _: np.random.Generator) -> None:
        await self._connected(150, b"POST /rerank HTTP/1.1\r\nHost: loc")

    async def _connected(self, count: int, *sent: bytes) -> None:
        """So many connections that send this and do nothing more for three seconds."""
        where = httpx.URL(self.url)
        writers = []
        for _ in range(count):
            try:
                _, writer = await asyncio.open_connection(where.host, where.port, limit=1)
            except OSError:
                continue
            writer.write(b"".join(sent))
            writers.append(writer)
        await asyncio.sleep(3)
        for writer in writers:
            writer.transport.abort()

    async def _hostile(self, _: np.random.Generator) -> None:
        headers = {"content-type": "application/json"}
        async with httpx.AsyncClient(timeout=30, headers=headers) as client:
            for body in HOSTILE:
                try:
                    answer = await client.post(f"{self.url}/v2/rerank", content=body)
                except httpx.TransportError:
                    continue
                if not 400 <= answer.status_code < 500 and answer.status_code not in SHED:
                    self.errors.append(f"hostile body: {answer.status_code}")

    async def _watch_memory(self, ends: float) -> None:
        """Resident bytes of all processes, while none of them is missing."""
        while time.monotonic() < ends:
            await asyncio.sleep(0.5)
            try:
                workers = self._workers()
                if len(workers) == self.given.workers:
                    self.memory.append(sum(one.memory_info().rss for one in workers))
            except psutil.NoSuchProcess:
                continue

    def report(self) -> dict[str, Any]:
        """What was seen, as JSON."""
        alone = [
            (began, ended)
            for began, ended in self.lost
            if not any(began - 1 < kill < ended + 1 for kill in self.kills)
        ]
        part = max(1, len(self.memory) // 5)
        before, after = (
            np.median(some) for some in (self.memory[part : 2 * part], self.memory[-part:])
        )
        p99 = float(np.percentile(self.latencies, 99))
        return {
            "machine": machine(),
            "seconds": self.given.seconds,
            "clients": self.given.clients,
            "pause": self.given.pause,
            "statuses": dict(sorted(self.statuses.items())),
            "faults": dict(self.faults),
            "partial": self.partial,
            "lost": len(self.lost),
            "lost_reasons": dict(self.reasons),
            "p50_seconds": float(np.percentile(self.latencies, 50)),
            "p99_seconds": p99,
            "memory_mb": [round(float(one) / 2**20) for one in (before, after)],
            "examples": self.wrong[:5] + self.errors[:5],
            "results": {
                "wrong_answers": len(self.wrong),
                "undocumented_errors": len(self.errors),
                "lost_without_a_kill": len(alone),
                "p99_of_deadline": p99 / self.given.deadline,
                "memory_growth": float(after / before - 1),
            },
        }


if __name__ == "__main__":
    main()
