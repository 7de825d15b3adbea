"""Index a corpus with BM25 and search it."""

from pathlib import Path

import secondlook as sl

SAMPLE = Path(__file__).parent / "quickstart"

index = sl.build_index(SAMPLE / "corpus.jsonl", "example.index", replace=True)
[ranking] = index.retrieve(["What was the Rhine considered to invaders in WWII?"], k=5)
documents = index.fetch([hit.doc_id for hit in ranking.hits])
for hit, document in zip(ranking.hits, documents, strict=True):
    print(f"{hit.score:6.2f}  {document.id}  {document.text[:80]}")
