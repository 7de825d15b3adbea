"""What it saves to keep the states of documents: pairs a second, the same documents asked again.

    python benchmarks/separate_layers.py BASE DATA RUN

BASE is a bi-encoder's folder, DATA a folder in BEIR's layout, RUN a TREC run over it. The documents
of the run's first query are scored for that query, so that the separate layers have seen them, and
then, timed, for the queries after it. "layers" is how many of the lowest are separate: with 0 there
is nothing to keep, with all of them the ranker is a bi-encoder whose vectors are kept. Rounds take
turns, and the best one counts, so that neighbours on the machine count as little as possible.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path

from secondlook.encode.encoder import Encoder
from secondlook.model.network import new_warm
from secondlook.score.torch_backend import TorchBackend
from secondlook.types import Document, Query


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("base", type=Path)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    arguments.add_argument("--queries", type=int, default=3)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    queries, documents = read(given.data, given.run, given.queries)
    depth = new_warm(given.base).network.layers
    rankers = {}
    for layers in sorted({0, depth // 2, depth - 1, depth}):
        model = new_warm(given.base, separate_layers=layers)
        encoder = Encoder(model.tokenizer, model.settings.encode)
        rankers[layers] = encoder, TorchBackend(model.network, precision=given.precision)
    speeds = dict.fromkeys(rankers, 0.0)
    for round_ in range(given.rounds + 1):
        for layers, (encoder, backend) in rankers.items():
            asked = queries[1:] if round_ else queries[:1]  # the first round fills the store
            features = encoder.encode([(query, one) for query in asked for one in documents])
            start = time.perf_counter()
            backend.logits(features)
            speed = len(features) / (time.perf_counter() - start)
            speeds[layers] = max(speeds[layers], speed) if round_ else 0.0
    for layers, speed in speeds.items():
        kept = rankers[layers][1].states.bytes / 2**20
        print(
            f"{layers:2} of {depth} layers separate: {speed:8.1f} pairs/s, "
            f"{speed / speeds[0]:5.2f} times, {kept:6.1f} MiB kept"
        )


def read(data: Path, run: Path, queries: int) -> tuple[list[Query], list[Document]]:
    """The first queries of the run and one more, and the documents of its very first."""
    with gzip.open(run, "rt") if run.suffix == ".gz" else run.open() as lines:
        hits = [line.split()[:3:2] for line in lines]
    names = list(dict.fromkeys(query for query, _ in hits))[: queries + 1]
    wanted = {document for query, document in hits if query == names[0]}
    texts = {}
    with (data / "queries.jsonl").open() as lines:
        for line in map(json.loads, lines):
            texts[line["_id"]] = line["text"]
    with gzip.open(data / "corpus.jsonl.gz", "rt") as lines:
        corpus = [line for line in map(json.loads, lines) if line["_id"] in wanted]
    return (
        [Query(name, texts[name]) for name in names],
        [Document(one["_id"], one["text"]) for one in corpus],
    )


if __name__ == "__main__":
    main()
