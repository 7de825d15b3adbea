"""monoBERT on MS MARCO: BM25's top 1,000 re-ranked, MRR@10 on the development set.

    python examples/papers/monobert.py DATA WORK

DATA holds collection.tsv, queries.dev.small.tsv, qrels.dev.small.tsv, triples.train.small.tsv.
Killed at any moment, the same command goes on.
"""

from __future__ import annotations

from stages import Run, asked

QUERIES, QRELS = "queries.dev.small.tsv", "qrels.dev.small.tsv"


def reproduce(run: Run) -> str:
    """Index, train, re-rank; gives the table."""
    index = run.index(run.data / "collection.tsv")
    run.groups(index, QUERIES, QRELS, run.data / "msmarco.dev.parquet")
    first = run.candidates(index, QUERIES, QRELS, "bm25")
    ranker = run.ranker("monobert")
    second = run.reranked(first, index, QUERIES, ranker, "reranked")
    return run.measured(QRELS, [first, second], ["RR@10"])


if __name__ == "__main__":
    print(reproduce(asked(__doc__)))
