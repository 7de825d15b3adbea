"""MarkedBERT on MS MARCO: doc2query and BM25, then BERT with and without markers; tables 1 to 3.

    python examples/papers/markedbert.py DATA WORK

DATA holds what monobert.py needs, queries.train.tsv and qrels.train.tsv for doc2query, and
trec-qc.train.tsv, TREC's labelled questions, for table 3. Killed at any moment, the same command
goes on.
"""

from __future__ import annotations

from pathlib import Path

from secondlook.workflows.evaluate import evaluate_by
from secondlook.workflows.expand import expand, train_expander
from secondlook.workflows.query_types import train_types
from stages import Run, asked, once

QUERIES, QRELS = "queries.dev.small.tsv", "qrels.dev.small.tsv"
EXPANDER = "google-t5/t5-base"
"""The paper's doc2query is a transformer trained from scratch; T5 is its successor's base."""


def reproduce(run: Run, expander_base: str | Path = EXPANDER) -> str:
    """Expand, index, train both rankers, re-rank; gives the three tables."""
    plain = run.index(run.data / "collection.tsv")
    run.groups(plain, QUERIES, QRELS, run.data / "msmarco.dev.parquet")
    expanded = run.index(
        run.enriched(train_expander, expand, expander_base, "expander"), "doc2query"
    )
    bm25 = run.candidates(plain, QUERIES, QRELS, "bm25")
    first = run.candidates(expanded, QUERIES, QRELS, "doc2query")
    runs = [first]
    for name in ("markedbert-base", "markedbert"):
        ranker = run.ranker(name)
        # passages are re-ranked without what was added to them
        runs.append(run.reranked(first, plain, QUERIES, ranker, f"{name}.reranked"))
    files = run.data / QRELS, runs, run.data / QUERIES
    six = run.work / "six-types.safetensors"
    once(six, lambda: train_types([run.data / "trec-qc.train.tsv"], six, six=True))
    tables = [
        run.measured(QRELS, [bm25, *runs], ["RR@10"]),
        evaluate_by(*files, "length", found_in=first).summary(),
        evaluate_by(*files, "type", types=six, found_in=first).summary(),
    ]
    return "\n\n".join(tables)


if __name__ == "__main__":
    print(reproduce(asked(__doc__)))
