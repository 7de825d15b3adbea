"""Time the corpus store: build it from generated passages, then fetch random ids.

python benchmarks/corpus_store.py 1000000 store.sqlite
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from statistics import median, quantiles

from secondlook.data import CorpusStore
from secondlook.types import Document
from zipf_corpus import texts

FETCHES = 101
AT_ONCE = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    documents = [
        Document(f"d{number}", text) for number, text in enumerate(texts(arguments.count, 60, 1))
    ]

    begun = time.perf_counter()
    store = CorpusStore.build(arguments.target, documents)
    seconds = time.perf_counter() - begun
    megabytes = arguments.target.stat().st_size / 1e6
    print(f"build: {len(store) / seconds:,.0f} documents/s ({seconds:.1f} s), {megabytes:.0f} MB")

    rng = random.Random(1)
    times = []
    for _ in range(FETCHES):
        wanted = [document.id for document in rng.sample(documents, AT_ONCE)]
        begun = time.perf_counter()
        store.fetch(wanted)
        times.append(1000 * (time.perf_counter() - begun))
    print(
        f"fetch {AT_ONCE} ids: median {median(times):.1f} ms, p95 {quantiles(times, n=20)[-1]:.1f}"
    )

    begun = time.perf_counter()
    read = sum(1 for _ in store)
    print(f"read through: {read / (time.perf_counter() - begun):,.0f} documents/s")
    store.close()


if __name__ == "__main__":
    main()
