"""Whether a recipe takes the same decisions in bf16 as in fp32: trained or start, phase by phase.

    secondlook index CORPUS I
    secondlook mine I queries.jsonl qrels/train.tsv -o train.parquet
    secondlook mine I queries.jsonl qrels/dev.tsv --all --ranks 1-20 -o dev.parquet
    python benchmarks/precision.py train.parquet dev.parquet --base MiniLM --work WORK

Two phases (pointwise, listwise) of a warm ranker, for each seed and precision. What is there
already is not made again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from secondlook.model.checkpoint import open_checkpoint
from secondlook.train.phase import TrainData
from secondlook.train.recipe import Recipe
from secondlook.train.run import Job, train

MEASURE = "nDCG@10"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("train", type=Path)
    arguments.add_argument("validation", type=Path)
    arguments.add_argument("--base", required=True)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments.add_argument("--steps", type=int, default=10, help="of each phase")
    arguments.add_argument("--queries", type=int, default=40, help="to validate on")
    arguments.add_argument("--max-length", type=int, default=128)
    arguments.add_argument("--learning-rate", type=float, default=2e-5)
    given = arguments.parse_args()
    decisions: dict[int, dict[str, list[bool]]] = {}
    for seed in given.seeds:
        decisions[seed] = {}
        for precision in ("fp32", "bf16"):
            ranker = given.work / f"{precision}-{seed}"
            if not ranker.is_dir():
                train(job(given, ranker, seed, precision), resume=True)
            phases = open_checkpoint(ranker).settings.lineage.phases[1:]
            decisions[seed][precision] = [
                f"{MEASURE} of the rejected training" not in phase.metrics for phase in phases
            ]
            for phase in phases:
                print(seed, precision, phase.name, phase.figures, flush=True)
    same = [one["fp32"] == one["bf16"] for one in decisions.values()]
    print(json.dumps({"kept the training": decisions, "same in both precisions": same}))


def job(given: argparse.Namespace, ranker: Path, seed: int, precision: str) -> Job:
    learning = {
        "max_steps": given.steps,
        "batch": 6,
        "learning_rate": given.learning_rate,
        "dropout": 0.0,
        "average": 0.9,
        "freeze_embeddings": True,
        "precision": precision,
        "validate_every": given.steps,
        "validate_queries": given.queries,
    }
    recipe = Recipe.model_validate(
        {
            "base": given.base,
            "seed": seed,
            "encode": {"max_length": given.max_length},
            "data": {"train": [given.train.name], "validation": given.validation.name},
            "phases": [
                {"phase": "warm"},
                {"phase": "pointwise", "negatives": 3, **learning},
                {"phase": "listwise", "negatives": 3, **learning},
            ],
        }
    )
    data = TrainData(given.train.parent, (given.train,), given.validation)
    return Job(recipe, ranker, given.base, data)


if __name__ == "__main__":
    main()
