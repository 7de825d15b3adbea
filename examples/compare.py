"""Test whether re-ranking improves the results, on queries with relevance judgments."""

import sys
from pathlib import Path

import secondlook as sl

MODEL = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "quickstart"

index = sl.build_index(SAMPLE / "corpus.jsonl", "example.index", replace=True)
qrels = sl.load_qrels(SAMPLE / "qrels" / "test.tsv")
queries = [q for q in sl.load_queries(SAMPLE / "queries.jsonl") if q.id in qrels][:25]
qrels = {query.id: qrels[query.id] for query in queries}

bm25 = index.retrieve(queries, k=10)
second = sl.Ranker.from_biencoder(MODEL).rerank(queries, bm25, index)
comparison = sl.compare(qrels, bm25, second, measures=["nDCG@10"], queries=queries)
print(comparison.summary())
bm25.write("example.bm25.trec")
second.write("example.reranked.trec")
