"""What `secondlook tune` made, beside sentence-transformers' CrossEncoderTrainer in the same time.

    secondlook tune insuranceqa -o tuned --base e5-small --minutes 13
    python benchmarks/tune_beside.py tuned --base e5-small --minutes 13 --work WORK

Theirs follows the recipe of its documentation for hard negatives: binary cross-entropy, five
negatives for each positive and a positive's weight of five, 64 pairs a step, learning rate 2e-5
with a tenth of warm-up, bf16, one epoch at most. It learns from the groups that `tune` mined, for
as many steps as fit into the minutes (three steps are timed before). Both rank the same candidates
of the same test queries, and are exported and compared by the same verbs. What is there already is
not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from five_lists import verb
from rerank import quiet
from secondlook.train.groups import Groups

NEGATIVES, BATCH = 5, 64
AT_ONCE = 16  # pairs; 64 at once took more memory than there was
LENGTH = 256  # tokens, as `tune` reads


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("tuned", type=Path, help="the folder that `tune` made")
    arguments.add_argument("--base", required=True)
    arguments.add_argument("--minutes", type=float, required=True)
    arguments.add_argument("--queries", type=Path, required=True, help="queries.jsonl of the data")
    arguments.add_argument("--work", type=Path, required=True)
    given = arguments.parse_args()
    quiet()
    given.work.mkdir(parents=True, exist_ok=True)
    stages, ranker = given.tuned / "stages", given.work / "crossencoder"
    if not ranker.exists():
        rows = pairs(stages / "groups" / "train.parquet")
        seconds = trained(given.base, rows, 3, given.work / "timed") / 3
        steps = min(int(given.minutes * 60 / seconds), len(rows) // BATCH)
        print(f"{seconds:.1f} s a step, {steps} steps", flush=True)
        trained(given.base, rows, steps, ranker)
        verb("export", ranker, "--precision", "bf16")
    runs = {name: stages / f"tested.{name}.trec.gz" for name in ("bm25", "untuned", "tuned")}
    runs["crossencoder"] = given.work / "test.crossencoder.trec.gz"
    if not runs["crossencoder"].exists():
        asked = "--index", stages / "index", "--queries", given.queries, "--ranker", ranker
        verb("rerank", runs["bm25"], *asked, "-o", runs["crossencoder"])
    qrels = stages / "used" / "tested.tsv"
    for base in ("bm25", "untuned", "crossencoder"):
        told = verb("compare", qrels, runs[base], runs["tuned"], "-m", "nDCG@10", "--json")
        print(f"tuned against {base}:", json.dumps(json.loads(told)), flush=True)


def pairs(path: Path) -> list[dict[str, Any]]:
    """A positive of each query and five of its negatives, queries in an order drawn at random."""
    groups = Groups([path])
    draw = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    for at in draw.permutation(len(groups)).tolist():
        group = groups[at]
        positive = [one for one, label in enumerate(group.labels) if label > 0][:1]
        others = [one for one, label in enumerate(group.labels) if label <= 0]
        for one in positive + draw.permutation(others).tolist()[:NEGATIVES]:
            document = group.documents[one]
            text = f"{document.title} {document.text}".strip()
            label = float(group.labels[one] > 0)
            rows.append({"query": group.query.text, "text": text, "label": label})
    return rows


def trained(base: str, rows: list[dict[str, Any]], steps: int, made: Path) -> float:
    """The seconds it took."""
    from datasets import Dataset
    from sentence_transformers.cross_encoder import (
        CrossEncoder,
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    torch.manual_seed(12)
    model = CrossEncoder(base, num_labels=1, max_length=LENGTH, device="cpu")
    trainer = CrossEncoderTrainer(
        model=model,
        args=CrossEncoderTrainingArguments(
            output_dir=str(made.with_suffix(".run")),
            max_steps=steps,
            per_device_train_batch_size=AT_ONCE,
            gradient_accumulation_steps=BATCH // AT_ONCE,
            learning_rate=2e-5,
            warmup_steps=0.1,
            bf16=True,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            seed=12,
        ),
        train_dataset=Dataset.from_list(rows),
        loss=BinaryCrossEntropyLoss(model, pos_weight=torch.tensor(float(NEGATIVES))),
    )
    began = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - began
    model.save_pretrained(str(made))
    return took


if __name__ == "__main__":
    main()
