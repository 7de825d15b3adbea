"""DR-BERT on MS MARCO: DeepCT and BM25, then the whole recipe; the vocabulary gap on request.

    python examples/papers/drbert.py DATA WORK

DATA holds collection.tsv, queries.train.tsv, qrels.train.tsv, queries.dev.small.tsv and
qrels.dev.small.tsv, and labelled queries for their types, query-types.tsv (columns type and query;
MS MARCO QA has one for each of its queries). With bert-corpus.jsonl, texts like those that BERT was
made of, the gap of section 3.1.1 is told too. Killed at any moment, the same command goes on.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from secondlook.data import read_queries, write_queries
from secondlook.model.checkpoint import TYPES
from secondlook.workflows.gap import gap
from secondlook.workflows.mine import mine
from secondlook.workflows.query_types import predict_types, train_types
from secondlook.workflows.weigh import train_weigher, weigh
from stages import Run, asked, once

QRELS = "qrels.dev.small.tsv"
WEIGHER = "google-bert/bert-base-uncased"
K1 = 30
"""Of the index of weights, which are frequencies of up to 100; 0.9 would make all words alike."""


def reproduce(run: Run, weigher_base: str | Path = WEIGHER) -> str:
    """Weigh terms, index, mine, train all phases, re-rank; gives the table."""
    types = run.work / "types.safetensors"
    once(types, lambda: train_types([run.data / "query-types.tsv"], types))
    train, dev = (_typed(run, name, types) for name in ("train", "dev.small"))
    weighed = run.enriched(train_weigher, weigh, weigher_base, "weigher")
    index = run.index(weighed, "deepct", k1=K1)
    run.groups(index, dev, QRELS, run.data / "msmarco.dev.parquet")
    groups = run.data / "msmarco.train.parquet"
    files = run.data / train, run.data / "qrels.train.tsv", groups
    once(groups, lambda: mine(index, *files, negatives=100, ranks=(1, run.depth)))
    bm25 = run.candidates(run.index(run.data / "collection.tsv"), dev, QRELS, "bm25")
    first = run.candidates(index, dev, QRELS, "deepct")
    ranker = run.ranker("drbert")
    once(ranker / TYPES, lambda: shutil.copy(types, ranker / TYPES))  # for queries without a type
    second = run.reranked(first, index, dev, ranker, "reranked")
    table = run.measured(QRELS, [bm25, first, second], ["RR@10"])
    other = run.data / "bert-corpus.jsonl"
    if other.is_file():
        table += f"\n{gap(run.data / 'collection.tsv', against=other, documents=0).advice}"
    return table


def _typed(run: Run, split: str, types: Path) -> str:
    """The queries with their types, in a file beside the others."""
    target = run.data / f"queries.{split}.typed.jsonl"

    def make() -> None:
        queries = list(read_queries(run.data / f"queries.{split}.tsv"))
        kinds = predict_types(types, [query.text for query in queries])
        typed = [replace(query, type=kind) for query, kind in zip(queries, kinds, strict=True)]
        write_queries(target, typed)

    return once(target, make).name


if __name__ == "__main__":
    print(reproduce(asked(__doc__)))
