"""The figures of docs/scale.md, each from a measurement on file or a formula.

    python benchmarks/scale_figures.py

The measurements are those of docs/results/first-look.md and second-look.md, on two cores.
"""

from __future__ import annotations

from dataclasses import dataclass

from secondlook.scale.vector_costs import VectorCosts
from secondlook.scale.zipf import QueryLog

PAIRS_PER_CORE = 254.9 / 2  # OpenVINO bf16, MiniLM-L6, DL 2019's pairs of 95 tokens on average
ENCODED_PER_CORE = 88.2 / 2  # OpenVINO fp32, the same network and lengths
INDEX_BYTES = 350e6 / 1e6  # a passage of 60 words in OpenSearch
STORE_BYTES = 472e6 / 1e6  # its text in the corpus store
INDEX_PER_SECOND = 7336  # documents into OpenSearch, two cores
HARD_QUERY_CORE_SECONDS = 2 / 14.3 / 1e6  # per passage, OpenSearch, queries that match most of them
BUSY = 0.6  # the load at which a fleet is planned here; `secondlook plan` finds it by simulation
COPIES = 2
HOURLY_PER_CORE = 0.71 / 16  # examples/prices.toml, compute-16
HOURS = 730


@dataclass(frozen=True)
class Size:
    """A corpus, and who asks it."""

    name: str
    passages: float
    qps: float
    candidates: int
    cached: float
    """Answers an hour old at most, by Zipf's law with the middle exponent."""


LOG = QueryLog.zipf(50_000_000, 0.83)
SIZES = [
    Size("one million", 1e6, 5, 100, 0.0),
    Size("one hundred million", 1e8, 200, 100, LOG.fresh(200 * 3600)),
    Size("ten billion", 1e10, 2000, 100, LOG.fresh(2000 * 3600)),
]


def main() -> None:
    heads = "index, GB x 2|text, GB|queries/s|from the cache|re-ranking, cores|its cost"
    print(f"| passages |{heads}|\n|---|---|---|---|---|---|---|")
    for size in SIZES:
        pairs = size.qps * (1 - size.cached) * size.candidates
        cores = pairs / PAIRS_PER_CORE / BUSY
        print(
            f"| {size.name} | {size.passages * INDEX_BYTES * COPIES / 1e9:,.1f} "
            f"| {size.passages * STORE_BYTES / 1e9:,.1f} | {size.qps:,.0f} | {size.cached:.2f} "
            f"| {cores:,.0f} | {cores * HOURLY_PER_CORE * HOURS:,.0f} USD/month |"
        )
    print()
    heads = "indexing, hours of two cores|weighing, core-hours|hard query, core-s"
    print(f"| passages |{heads}|\n|---|---|---|---|")
    for size in SIZES:
        print(
            f"| {size.name} | {size.passages / INDEX_PER_SECOND / 3600:,.2f} "
            f"| {size.passages / PAIRS_PER_CORE / 3600:,.0f} "
            f"| {size.passages * HARD_QUERY_CORE_SECONDS:,.2f} |"
        )
    print()
    print("| passages | precision | disk, GB | memory, GB |")
    print("|---|---|---|---|")
    for size in SIZES:
        for precision in ("fp32", "fp16", "int8"):
            costs = VectorCosts(precision)
            print(
                f"| {size.name} | {precision} | {size.passages * costs.disk_bytes / 1e9:,.1f} "
                f"| {size.passages * costs.memory_bytes / 1e9:,.1f} |"
            )
    print()
    print("| passages | encoding, core-hours | linking, core-hours | a search, core-s | on 32 |")
    print("|---|---|---|---|---|")
    for size in SIZES:
        costs = VectorCosts("int8")
        search = costs.search_seconds(round(size.passages), size.candidates)
        print(
            f"| {size.name} | {size.passages / ENCODED_PER_CORE / 3600:,.0f} "
            f"| {costs.build_seconds(round(size.passages)) / 3600:,.1f} "
            f"| {search:.3f} | {32 / search:,.1f} queries/s |"
        )
    print()
    print("| Zipf's exponent | entries | best | LRU | an hour at 200/s | a day at 200/s |")
    print("|---|---|---|---|---|---|")
    for exponent in (0.7, 0.83, 1.0):
        log = QueryLog.zipf(50_000_000, exponent)
        for entries in (10_000, 100_000, 1_000_000, 10_000_000):
            print(
                f"| {exponent} | {entries:,} | {log.best(entries):.2f} | {log.lru(entries):.2f} "
                f"| {log.fresh(200 * 3600):.2f} | {log.fresh(200 * 86400):.2f} |"
            )


if __name__ == "__main__":
    main()
