"""Fine-tune a re-ranker on your data, and test whether it improves your results."""

import sys
from pathlib import Path

import secondlook as sl

MODEL = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "quickstart"
MINUTES = float(sys.argv[3]) if len(sys.argv) > 3 else 10

result = sl.tune(SAMPLE, "example.tuned", base=MODEL, minutes=MINUTES, depth=20)
print(result.verdict)
print(result.report)
