"""monoBERT on TREC CAR: pre-trained without the test paragraphs, trained on four folds of five.

    python examples/papers/monobert_car.py DATA WORK

DATA holds paragraphs.cbor, and for each of fold0 to fold4 and test the section paths (.outlines,
CBOR or one path a line) and judgments (.qrels); see docs/papers/monobert.md for their names in the
release. Killed at any moment, the same command goes on.
"""

from __future__ import annotations

from pathlib import Path

from secondlook.workflows.mine import mine
from stages import Run, asked, once

FOLDS = ("fold0", "fold1", "fold2", "fold3")
PASSAGES = 10
"""Of BM25, for each query of a fold."""


def reproduce(run: Run, corpus: str = "paragraphs.cbor") -> str:
    """Index, mine the folds, pre-train and train, re-rank; gives the table."""
    index = run.index(run.data / corpus)
    for fold in FOLDS:
        _mined(run, index, fold)
    last = run.data / "car.fold4.parquet"
    run.groups(index, "fold4.outlines", "fold4.qrels", last, depth=PASSAGES)
    first = run.candidates(index, "test.outlines", "test.qrels", "bm25")
    ranker = run.ranker("monobert-car")
    second = run.reranked(first, index, "test.outlines", ranker, "reranked")
    return run.measured("test.qrels", [first, second], ["AP@1000", "RR"])


def _mined(run: Run, index: Path, fold: str) -> None:
    """The top ten passages of each query of a fold, and what is relevant."""
    target = run.data / f"car.{fold}.parquet"
    files = run.data / f"{fold}.outlines", run.data / f"{fold}.qrels", target
    once(target, lambda: mine(index, *files, negatives=PASSAGES, ranks=(1, PASSAGES)))


if __name__ == "__main__":
    print(reproduce(asked(__doc__)))
