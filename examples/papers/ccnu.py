"""CCNU at TREC 2019: the passage run over frozen features, and the document run over MNLI.

    python examples/papers/ccnu.py DATA WORK

DATA holds, for passages: what monobert.py needs, queries.dl19.tsv and qrels.dl19.txt; for
documents: docs.tsv, queries.doc.tsv, qrels.doc.txt. The document run reads a classifier that was
fine-tuned on MNLI: --base names it (a folder or hub id with the classes entailment, neutral and
contradiction). Without it the passage run is made. Killed at any moment, the same command goes on.
"""

from __future__ import annotations

from dataclasses import replace

from secondlook.workflows.fuse import set_fusion, windows_of_words
from secondlook.workflows.nli import ranker_from_nli
from stages import Run, asked, once

QUERIES, QRELS = "queries.dev.small.tsv", "qrels.dev.small.tsv"
PASSAGE_MEASURES = ["AP(rel=2)@1000", "nDCG", "P(rel=2)@10"]
"""Grade 1 of the passage task means related, not relevant; in the document task it is relevant."""
DOCUMENT_MEASURES = ["AP@100", "nDCG", "P@10"]
DOCUMENTS = 100
"""That the document task ranks for each query."""
ALPHA, BETA = 0.8, 0.9


def passages(run: Run) -> str:
    """Train over frozen features, and add BM25's score as it is; gives table 1's row."""
    index = run.index(run.data / "collection.tsv")
    run.groups(index, QUERIES, QRELS, run.data / "msmarco.dev.parquet")
    ranker = run.ranker("frozen-features")
    set_fusion(ranker, ALPHA, "raw")
    first = run.candidates(index, "queries.dl19.tsv", "qrels.dl19.txt", "passages.bm25")
    second = run.reranked(first, index, "queries.dl19.tsv", ranker, "passages.reranked")
    return run.measured("qrels.dl19.txt", [first, second], PASSAGE_MEASURES)


def documents(run: Run, classifier: str) -> str:
    """Windows of 100 words scored by entailment, the best three with BM25; gives table 2's row."""
    run = replace(run, depth=min(run.depth, DOCUMENTS))
    index = run.index(run.data / "docs.tsv", "documents")
    ranker = run.work / "mnli"
    once(ranker, lambda: ranker_from_nli(classifier, ranker))
    set_fusion(ranker, BETA, "raw", windows=windows_of_words(100, 50, (1.0, 1.0, 1.0)))
    first = run.candidates(index, "queries.doc.tsv", "qrels.doc.txt", "documents.bm25")
    second = run.reranked(first, index, "queries.doc.tsv", ranker, "documents.reranked")
    return run.measured("qrels.doc.txt", [first, second], DOCUMENT_MEASURES)


def main() -> None:
    """The passage run, and with a classifier the document run."""
    run = asked(__doc__)
    print(documents(run, run.base) if run.base else passages(run))


if __name__ == "__main__":
    main()
