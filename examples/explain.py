"""Show which words of a document raised its score most."""

import sys
from pathlib import Path

import secondlook as sl

MODEL = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "quickstart"

index = sl.build_index(SAMPLE / "corpus.jsonl", "my.index", replace=True)
query = "What was the Rhine considered to invaders in WWII?"
[[best, *_]] = [ranking.hits for ranking in index.retrieve([query], k=1)]
[document] = index.fetch([best.doc_id])

ranker = sl.Ranker.from_biencoder(MODEL)
explanation = sl.explain_score(query, document.text, ranker)
words = sorted(explanation.document_words, key=lambda word: -word.attribution)
for word in words[:5]:
    print(f"{word.attribution:+.3f}  {word.text}")
