"""Show which words of a document raised its score most."""

import sys

import secondlook as sl

MODEL = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
QUERY = "What was the Rhine considered to invaders in WWII?"
DOCUMENT = "In World War II the Rhine was a formidable natural obstacle to the invasion of Germany."

ranker = sl.Ranker.from_biencoder(MODEL)
explanation = sl.explain_score(QUERY, DOCUMENT, ranker)
words = sorted(explanation.document_words, key=lambda word: -word.attribution)
for word in words[:5]:
    print(f"{word.attribution:+.3f}  {word.text}")
