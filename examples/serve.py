"""Serve a re-ranker and a search page: http://localhost:8080, until Ctrl-C."""

import os
import sys
from pathlib import Path

import secondlook as sl

MODEL = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "quickstart"

sl.build_index(SAMPLE / "corpus.jsonl", "example.index", replace=True)
sl.Ranker.from_biencoder(MODEL, folder="example.ranker", replace=True)
sl.serve_ranker("example.ranker", index="example.index", port=int(os.environ.get("PORT", "8080")))
