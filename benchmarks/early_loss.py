r"""Why a short training first loses: the same training with one thing changed at a time.

    python benchmarks/early_loss.py DATA/insuranceqa --base all-MiniLM-L6-v2 --work WORK \
      --ways as-it-was score-scale long-warm-up --seeds 1

A ranker learns lists and is validated every few steps (nDCG@10 on BM25's top of some dev
queries). Each way and seed is a training of its own: it prints one line of JSON, which
WORK/curves/WAY.SEED.json keeps, and is passed over from then on; one that was interrupted resumes.
Ways and seeds may be given one by one, with the same WORK; `--table` prints all that is done.

Two cheaper looks at the same lists, without training: `--scales` prints the loss of the start with
its scores as they are and times the factor at which it is least; `--parts STATE` (a saved state of
such a training, its model.safetensors) prints the loss of the start, of the state, and of the state
with the gates and the head of the start, over lists that come late in the first epoch.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import torch
from safetensors.torch import load_file

from secondlook.data import write_qrels
from secondlook.data.durable import write_at_once
from secondlook.data.splits import read_splits, some
from secondlook.model.checkpoint import open_checkpoint
from secondlook.model.network import Model, load_model, new_warm
from secondlook.train import ranking
from secondlook.train.draw import Draw
from secondlook.train.groups import Groups
from secondlook.train.losses.listwise import Listwise
from secondlook.train.ranker import ranker_of
from secondlook.train.recipe import Recipe
from secondlook.train.run import job, train
from secondlook.train.start import first_settings, kind_of
from secondlook.workflows.claim import claim
from secondlook.workflows.index import build_index
from secondlook.workflows.mine import mine

STILL = 1e-12
WAYS: dict[str, dict[str, Any]] = {
    "as-it-was": {},
    "score-scale": {"fit_score_scale": True},
    "long-warm-up": {"warmup": 0.5},
    "no-cross-attention": {"scalar_learning_rate": STILL, "head_learning_rate": STILL},
    "average": {"average": 0.9},
    "rate-5e-6": {"learning_rate": 5e-6},
    "rate-1e-5": {"learning_rate": 1e-5},
    "adam-beta2-98": {"adam": {"adam_beta2": 0.98}},
    "adam-eps-1e-6": {"adam": {"adam_epsilon": 1e-6}},
    "scale-and-average": {"fit_score_scale": True, "average": 0.9},
    "scale-and-5e-6": {"fit_score_scale": True, "learning_rate": 5e-6},
    "scale-and-5e-5": {"fit_score_scale": True, "learning_rate": 5e-5},
    "scale-and-1e-4": {"fit_score_scale": True, "learning_rate": 1e-4},
    "scale-and-still": {
        "fit_score_scale": True,
        "scalar_learning_rate": STILL,
        "head_learning_rate": STILL,
    },
}
"""Settings of the phase that differ from `as-it-was`; `adam` is of the optimiser."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--base", required=True)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments.add_argument("--steps", type=int, default=32)
    arguments.add_argument("--every", type=int, default=8, help="steps between validations")
    arguments.add_argument("--queries", type=int, default=60, help="to validate on")
    arguments.add_argument("--candidates", type=int, default=20, help="of each, to rank")
    arguments.add_argument("--negatives", type=int, default=5, help="in a training list")
    arguments.add_argument("--mined-to", type=int, default=100, help="rank of the last negative")
    arguments.add_argument("--found", action="store_true", help="positives of the run alone")
    arguments.add_argument("--max-length", type=int, default=96)
    arguments.add_argument("--table", action="store_true")
    arguments.add_argument("--scales", action="store_true")
    arguments.add_argument("--parts", type=Path)
    given = arguments.parse_args()
    if given.table:
        print(table(given.work))
        return
    with redirect_stdout(sys.stderr):  # standard output is for results
        groups(given)
    if given.scales or given.parts:
        without_training(given)
        return
    for seed in given.seeds:
        for way in given.ways:
            with redirect_stdout(sys.stderr):
                row = trained(given, way, seed)
            print(json.dumps(row), flush=True)


def groups(given: argparse.Namespace) -> None:
    """Training and validation groups, from BM25's candidates."""
    index, mined = given.work / "index", given.work / "train.parquet"
    settings = ("data", "base", "steps", "every", "queries", "candidates", "negatives")
    settings += ("mined_to", "found", "max_length")
    asked = {name: (str(getattr(given, name)), mined) for name in settings}
    claim(given.work, asked)
    [corpus], [queries] = given.data.glob("corpus.*"), given.data.glob("queries.*")
    if not index.exists():
        build_index(corpus, index)
    splits = read_splits(given.data)
    wanted = {"train": (splits.train, 8 * given.steps), "dev": (splits.dev, given.queries)}
    for name, (qrels, count) in wanted.items():
        if not (given.work / f"{name}.parquet").exists():
            write_qrels(given.work / f"{name}.tsv", some(qrels, count))
            mine(
                index,
                queries,
                given.work / f"{name}.tsv",
                given.work / f"{name}.parquet",
                ranks=(1, given.candidates) if name == "dev" else (1, given.mined_to),
                keep_all=name == "dev",
                add_positives=name == "train" and not given.found,
            )


def trained(given: argparse.Namespace, way: str, seed: int) -> dict[str, Any]:
    """Way, seed, the curve (step → nDCG@10) and, at its end, that of the averaged weights."""
    kept = given.work / "curves" / f"{way}.{seed}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text("utf-8")))
    changes = dict(WAYS[way])
    adam = changes.pop("adam", {})
    arguments = ranking._arguments

    def with_adam(*args: Any, **more: Any) -> Any:
        made = arguments(*args, **more)
        for name, value in adam.items():
            setattr(made, name, value)
        return made

    with patch.object(ranking, "_arguments", with_adam):
        output = given.work / f"{way}-{seed}"
        train(job(recipe(given, changes, seed), given.work, output, device="cpu"), resume=True)
    [outcome] = (given.work / f"{way}-{seed}.work").glob("*-listwise.work/outcome.json")
    history = json.loads(outcome.read_text("utf-8"))["history"]
    curve = {f"{point['step']:.0f}": point["nDCG@10"] for point in history if "nDCG@10" in point}
    metrics = open_checkpoint(output).settings.lineage.phases[-1].metrics
    row = {"way": way, "seed": seed, "nDCG@10": curve}
    row["of the average"] = metrics.get("nDCG@10 of their average")
    kept.parent.mkdir(exist_ok=True)
    write_at_once(kept, json.dumps(row))
    return row


def without_training(given: argparse.Namespace) -> None:
    """What --scales and --parts print."""
    model = start_of(given)
    start = {name: weight.clone() for name, weight in model.network.state_dict().items()}
    whole, draw = Groups([given.work / "train.parquet"]), Draw(1, given.negatives, "1\0listwise")
    order = draw.order([group.query.id for group in whole], 0)
    late = order[-42:-10] if given.parts else order[:32]
    lists = [draw.documents(whole[row], 0) for row in late]

    def tell(name: str, state: dict[str, Any], factors: list[float]) -> None:
        model.network.load_state_dict(state)
        scorer = ranker_of(model, None, torch.device("cpu"), "fp32")
        scores = [scorer.score([(one.query, d) for d in one.documents]) for one in lists]
        losses = {
            factor: fmean(
                Listwise().cost(factor * torch.from_numpy(own), torch.tensor(one.labels)).item()
                for own, one in zip(scores, lists, strict=True)
            )
            for factor in factors
        }
        best = min(losses, key=losses.__getitem__)
        first = sum(one.labels[own.argmax()] > 0 for own, one in zip(scores, lists, strict=True))
        row = {"weights": name, "lists": len(lists), "positive first": first, "loss": losses[1.0]}
        row |= {"best factor": best, "loss at the best factor": losses[best]}
        print(json.dumps(row), flush=True)

    if given.scales:
        tell("start", start, [2 ** (step / 4) for step in range(-20, 21)])
        return
    after, own = load_file(given.parts), ("alpha", "gate", "head.weight", "head.bias")
    mixed = {name: start[name] if name in own else weight for name, weight in after.items()}
    tell("start", start, [1.0])
    tell("trained", after, [1.0])
    tell("trained encoder, gates and head of the start", mixed, [1.0])


def start_of(given: argparse.Namespace) -> Model:
    """The base without training, as it is trained."""
    if kind_of(given.base) == "bi-encoder":
        return new_warm(given.base, encode={"max_length": given.max_length})
    model = load_model(given.base)
    encode = model.settings.encode.model_copy(update={"max_length": given.max_length})
    return replace(model, settings=model.settings.model_copy(update={"encode": encode}))


def recipe(given: argparse.Namespace, changes: dict[str, Any], seed: int) -> Recipe:
    listwise = {
        "phase": "listwise",
        "max_steps": given.steps,
        "batch": 8,
        "negatives": given.negatives,
        "learning_rate": 2e-5,
        "dropout": 0.0,
        "freeze_embeddings": True,
        "validate_every": given.every,
    }
    return Recipe.model_validate(
        {
            "base": given.base,
            "seed": seed,
            "encode": {"max_length": given.max_length},
            "data": {"train": ["train.parquet"], "validation": "dev.parquet"},
            "phases": [*first_settings(given.base)["phases"], listwise | changes],
        }
    )


def table(work: Path) -> str:
    """All curves that are there."""
    rows = [json.loads(path.read_text("utf-8")) for path in sorted(work.glob("curves/*.json"))]
    lines = []
    for row in rows:
        values = [*row["nDCG@10"].values(), row["of the average"]]
        shown = " | ".join(f"{value:.4f}" for value in values if value is not None)
        lines.append(f"| {row['way']} | {row['seed']} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
