"""Fine-tune a re-ranker on judgments: mine hard negatives, then train by a recipe."""

import sys
from pathlib import Path

import secondlook as sl

MODEL = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "quickstart"
QUERIES = 8  # all 800 take some minutes
DATA = Path("example.data")

RECIPE = """
[encode]
max_length = 96

[data]
train = ["train.parquet"]
validation = "dev.parquet"

[[phases]]
phase = "warm"

[[phases]]
phase = "listwise"
positives = 1
negatives = 3
epochs = 1
batch = 4
learning_rate = 2e-5
"""

sl.build_index(SAMPLE / "corpus.jsonl", "example.index", replace=True)
DATA.mkdir(exist_ok=True)
for split in ("train", "dev"):
    qrels = sl.load_qrels(SAMPLE / "qrels" / f"{split}.tsv")
    sl.write_qrels(DATA / f"{split}.tsv", dict(list(qrels.items())[:QUERIES]))
    validates = split == "dev"
    counts = sl.mine(
        "example.index",
        SAMPLE / "queries.jsonl",
        DATA / f"{split}.tsv",
        DATA / f"{split}.parquet",
        ranks=(1, 5),
        keep_all=validates,
    )
    print(split, counts)

(DATA / "recipe.toml").write_text(f'base = "{MODEL}"\n{RECIPE}')
print(sl.train_ranker(DATA / "recipe.toml", "example.trained", data=DATA).summary())
ranker = sl.Ranker.load("example.trained")
print(
    ranker.rank("who wrote hamlet", ["Hamlet is by Shakespeare.", "A hamlet is a small village."])
)
