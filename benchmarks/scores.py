"""How well relevance scores tell related from unrelated texts, without any judgments.

    python benchmarks/scores.py --shared SHARED --minilm FOLDER -o scores.json

For each ranker and collection: judged relevant pairs and random unrelated pairs, the share of each
above .5, ties, and the AUC of the relevance score beside that of the raw score. Rankers are made
with `secondlook warm`, or loaded as they are; nothing is fitted to the collections.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from secondlook import Ranker
from secondlook.data import read_corpus, read_qrels, read_queries
from secondlook.score.warm import make_warm
from secondlook.types import Pair

PARTS = {"scifact": ("train", "test"), "squad-passage": ("test",)}
"""The reference pairs are of other articles than SQuAD's test part."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="holds data/ and weights/")
    parser.add_argument("--minilm", type=Path, required=True, help="all-MiniLM-L6-v2's folder")
    parser.add_argument("--rankers", nargs="+", default=["cross-encoder", "minilm", "e5"])
    parser.add_argument("--pairs", type=int, default=500, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    samples = {
        name: sample(given.shared / "data" / name, parts, given.pairs, given.seed)
        for name, parts in PARTS.items()
    }
    rows = []
    for name, ranker in rankers(given.rankers, given.shared / "weights", given.minilm):
        for collection, (relevant, unrelated) in samples.items():
            rows.append({"ranker": name, "collection": collection})
            rows[-1] |= figures(ranker, relevant, unrelated)
            print(json.dumps(rows[-1]), flush=True)
    given.output.write_text(
        json.dumps({"seed": given.seed, "pairs": given.pairs, "rows": rows}, indent=1) + "\n"
    )


def rankers(wanted: list[str], weights: Path, minilm: Path) -> Iterator[tuple[str, Ranker]]:
    if "cross-encoder" in wanted:
        yield "ms-marco-MiniLM-L-12-v2", Ranker.load(weights / "ms-marco-minilm-l12")
    for name, base in {"minilm": minilm, "e5": weights / "e5-small"}.items():
        if name in wanted:
            with TemporaryDirectory() as folder:
                make_warm(base, Path(folder) / "ranker")
                yield f"warm {name}", Ranker.load(Path(folder) / "ranker")


def sample(
    folder: Path, parts: tuple[str, ...], count: int, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Judged relevant pairs, and judged queries with documents drawn at random."""
    rng = random.Random(seed)
    corpus = {document.id: document for document in read_corpus(folder / "corpus.jsonl.gz")}
    (path,) = folder.glob("queries.jsonl*")
    queries = {query.id: query for query in read_queries(path)}
    qrels = {}
    for part in parts:
        qrels |= read_qrels(folder / "qrels" / f"{part}.tsv")
    relevant = [(q, d) for q, own in qrels.items() for d, grade in own.items() if grade > 0]
    unrelated: list[tuple[str, str]] = []
    while len(unrelated) < count:
        query, document = rng.choice(sorted(qrels)), rng.choice(sorted(corpus))
        if document not in qrels[query]:
            unrelated.append((query, document))
    chosen = rng.sample(relevant, count)
    return (
        [(queries[q], corpus[d]) for q, d in chosen],
        [(queries[q], corpus[d]) for q, d in unrelated],
    )


def figures(ranker: Ranker, relevant: list[Pair], unrelated: list[Pair]) -> dict[str, float]:
    raw = ranker.score([*relevant, *unrelated])
    scores = ranker.relevance(raw)
    of_relevant, of_unrelated = scores[: len(relevant)], scores[len(relevant) :]
    return {
        "relevant_above_half": float((of_relevant > 0.5).mean()),
        "unrelated_above_half": float((of_unrelated > 0.5).mean()),
        "median_relevant": float(np.median(of_relevant)),
        "median_unrelated": float(np.median(of_unrelated)),
        "highest": float(scores.max()),
        "distinct_raw": len(np.unique(raw)),
        "distinct": len(np.unique(scores)),
        "auc": auc(of_relevant, of_unrelated),
        "auc_raw": auc(raw[: len(relevant)], raw[len(relevant) :]),
    }


def auc(positive: np.ndarray, negative: np.ndarray) -> float:
    """The share of pairs of a positive and a negative that stand in the right order."""
    above = (positive[:, None] > negative[None, :]).mean()
    return float(above + 0.5 * (positive[:, None] == negative[None, :]).mean())


if __name__ == "__main__":
    main()
