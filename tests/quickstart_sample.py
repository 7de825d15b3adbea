"""A part of examples/quickstart that is read in no time."""

import json
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "examples" / "quickstart"


def small_sample(folder):
    """Some questions of each split, and the paragraphs that answer them."""
    (folder / "qrels").mkdir(parents=True)
    wanted, asked = set(), set()
    for name, count in {"train": 16, "dev": 6, "test": 8}.items():
        header, *rows = (SAMPLE / "qrels" / f"{name}.tsv").read_text().splitlines()
        (folder / "qrels" / f"{name}.tsv").write_text("\n".join([header, *rows[:count]]) + "\n")
        asked |= {row.split("\t")[0] for row in rows[:count]}
        wanted |= {row.split("\t")[1] for row in rows[:count]}
    for name, ids in {"corpus": wanted, "queries": asked}.items():
        whole = (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        kept = [line for line in whole if json.loads(line)["_id"] in ids]
        (folder / f"{name}.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
