"""How fast the formats are read, beside a bare loop over the same file.

PYTHONPATH=src python benchmarks/formats.py [LINES]
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.data import read_corpus, read_run, write_corpus, write_run
from secondlook.types import Document, Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def rankings(lines: int, rng: random.Random) -> Iterator[Ranking]:
    for number in range(lines // 1000):
        docs = rng.sample(range(8_841_823), 1000)
        yield Ranking.of(str(number * 977), [Hit(str(d), rng.uniform(5, 40)) for d in docs])


def documents(lines: int, rng: random.Random) -> Iterator[Document]:
    words = [f"w{number}" for number in range(5000)]
    for number in range(lines // 5):
        yield Document(str(number), " ".join(rng.choices(words, k=60)))


def bare_run(path: Path) -> Iterator[tuple[str, float]]:
    """What a reader without any check costs."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            query_id, _, doc_id, _, score, _ = line.split()
            yield query_id + doc_id, float(score)


def bare_json(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def report(name: str, items: Iterable[Any], lines: int, size: int) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    deque(items, maxlen=0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{name:24} {wall:6.2f} s wall {cpu:6.2f} s CPU {lines / cpu / 1000:7.0f} k lines/s CPU "
        f"{size / cpu / 1e6:7.1f} MB/s CPU, unpacked"
    )


def main(lines: int) -> None:
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        run, collection, corpus = (Path(folder) / n for n in ("run.trec", "c.tsv", "c.jsonl"))
        write_run(run, rankings(lines, rng))
        write_corpus(collection, documents(lines, rng))
        write_corpus(corpus, documents(lines, rng))
        for plain, read, count in (
            (run, read_run, lines),
            (collection, read_corpus, lines // 5),
            (corpus, read_corpus, lines // 5),
        ):
            size = plain.stat().st_size
            packed = plain.with_name(plain.name + ".gz")
            packed.write_bytes(gzip.compress(plain.read_bytes(), 6))
            report(plain.name, read(plain), count, size)
            report(packed.name, read(packed), count, size)
        report("bare run.trec", bare_run(run), lines, run.stat().st_size)
        report("bare c.jsonl", bare_json(corpus), lines // 5, corpus.stat().st_size)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
