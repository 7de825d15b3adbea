"""Re-rank the candidates of BM25 with a bi-encoder that reads query and document together."""

import sys
from pathlib import Path

import secondlook as sl

MODEL = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "quickstart"

index = sl.build_index(SAMPLE / "corpus.jsonl", "example.index", replace=True)
ranker = sl.Ranker.from_biencoder(MODEL)  # or sl.Ranker.load(...) for any cross-encoder

queries = ["What was the Rhine considered to invaders in WWII?"]
bm25 = index.retrieve(queries, k=20)
second = ranker.rerank(queries, bm25, index)
for name, run in (("BM25", bm25), ("re-ranked", second)):
    [document] = index.fetch([run[0].hits[0].doc_id])
    print(f"{name}: {document.id}  {document.text[:80]}")
