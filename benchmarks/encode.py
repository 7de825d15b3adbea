"""How fast pairs become Features, beside the bare tokenizer, per core.

    python benchmarks/encode.py TOKENIZER DATA RUN

TOKENIZER is a folder with a tokenizer.json, DATA a folder in BEIR's layout, RUN a TREC run over
it: its pairs are encoded query by query, as in re-ranking. "bare" is the tokenizer's own
encode_batch over the same pairs, without anything done to what it returns. "unseen" passages are
tokenised, "cached" ones were before. All figures are the best of some rounds that take turns, in
CPU time of one thread, so that neighbours on the machine count as little as possible.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # per core

from tokenizers import Tokenizer

from secondlook.encode.encoder import Encoder
from secondlook.encode.features import collate
from secondlook.encode.markers import add_markers
from secondlook.encode.settings import EncodeSettings, MarkerSettings
from secondlook.types import Document, Pair, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("tokenizer", type=Path)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", action="store_true", help="print one line of JSON")
    given = arguments.parse_args()
    tokenizer = Tokenizer.from_file(str(given.tokenizer / "tokenizer.json"))
    figures = measure(tokenizer, read_pairs(given.data, given.run), given.rounds)
    if given.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:24} {figure:12,.2f}")


def read_lines(path: Path) -> list[str]:
    packed = path if path.suffix == ".gz" or path.is_file() else path.with_name(path.name + ".gz")
    opened = gzip.open if packed.suffix == ".gz" else open
    with opened(packed, "rt", encoding="utf-8") as lines:
        return list(lines)


def read_pairs(data: Path, run: Path) -> list[list[Pair]]:
    """The run's pairs, in one list per query."""
    queries = {row["_id"]: row for row in map(json.loads, read_lines(data / "queries.jsonl"))}
    corpus = {row["_id"]: row for row in map(json.loads, read_lines(data / "corpus.jsonl"))}
    pairs: dict[str, list[Pair]] = {}
    for line in read_lines(run):
        query, _, document, *_ = line.split()
        row = corpus[document]
        passage = Document(document, row["text"], row.get("title", ""))
        pairs.setdefault(query, []).append((Query(query, queries[query]["text"]), passage))
    return list(pairs.values())


def measure(tokenizer: Tokenizer, pairs: list[list[Pair]], rounds: int) -> dict[str, float]:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    add_markers(tokenizer, MarkerSettings())
    settings = {
        "": EncodeSettings(),
        ", marked": EncodeSettings(markers=MarkerSettings()),
    }
    seen = {name: Encoder(tokenizer, given) for name, given in settings.items()}
    features = {name: [encoder.encode(some) for some in pairs] for name, encoder in seen.items()}
    texts = [[(query.text, document.text) for query, document in some] for some in pairs]
    count = sum(map(len, pairs))
    rates: dict[str, float] = {}

    def clock(name: str, job: Callable[[T], object], batches: Sequence[T]) -> None:
        start = time.process_time()
        for batch in batches:
            job(batch)
        rate = count / (time.process_time() - start)
        rates[name] = max(rate, rates.get(name, 0.0))

    for _ in range(rounds):
        clock("bare", tokenizer.encode_batch, texts)
        for name, given in settings.items():
            clock(f"unseen{name}", Encoder(tokenizer, given).encode, pairs)
            clock(f"cached{name}", seen[name].encode, pairs)
        clock("collate", lambda batch: collate(batch, 0), features[""])

    tokens = {
        name: sum(len(one) for some in these for one in some) for name, these in features.items()
    }
    return {
        "pairs": count,
        "tokens per pair": tokens[""] / count,
        "markers per pair": (tokens[", marked"] - tokens[""]) / count,
        **{f"{name}, pairs/s": rate for name, rate in rates.items()},
        "unseen / bare": rates["unseen"] / rates["bare"],
        "unseen, marked / bare": rates["unseen, marked"] / rates["bare"],
    }


if __name__ == "__main__":
    main()
