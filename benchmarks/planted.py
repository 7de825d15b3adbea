"""Noise reduction on planted noise: a fifth of the known positives are hidden among the unlabelled.

    secondlook mine I queries.jsonl qrels/train.tsv --ranks 1-50 --negatives 3 -o train.parquet
    secondlook mine I queries.jsonl qrels/dev.tsv --ranks 1-50 --negatives 20 -o dev.parquet
    python benchmarks/planted.py train.parquet dev.parquet --base MiniLM --work WORK --seeds 1 2

Learnt from: the first groups with several positives, of which one is hidden in as many groups as it
takes. Three rankers by docs/results/recipes/planted.toml: of the labels as they were, of the
planted ones without the phase `denoise`, and with it. The first groups of the second file validate
during training, those after them are the test. What is there already is not made again.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import ttest_rel

from five_lists import verb
from secondlook import Ranker
from secondlook.train.groups import UNJUDGED, Group, Groups, write_groups
from secondlook.train.recipe import Recipe, resolved
from secondlook.train.validation import Validation

if TYPE_CHECKING:
    from collections.abc import Iterator

RECIPE = Path(__file__).parents[1] / "docs" / "results" / "recipes" / "planted.toml"
SHARE = 0.2


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("train", type=Path)
    arguments.add_argument("test", type=Path)
    arguments.add_argument("--base", required=True)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--queries", type=int, default=600, help="to learn from")
    arguments.add_argument("--validate", type=int, default=60)
    arguments.add_argument("--tested", type=int, default=300)
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1])
    given = arguments.parse_args()
    work: Path = given.work
    clean = list(islice(several(Groups([given.train])), given.queries))
    planted, hidden = plant(clean, np.random.default_rng(0))
    others = iter(Groups([given.test]))
    write_groups(work / "clean.parquet", clean, about={})
    write_groups(work / "planted.parquet", planted, about={})
    write_groups(work / "validation.parquet", islice(others, given.validate), about={})
    write_groups(work / "tested.parquet", islice(others, given.tested), about={})
    test = Validation(Groups([work / "tested.parquet"]), "nDCG@10")
    counted = sum(label == UNJUDGED for group in planted for label in group.labels)
    print(f"{len(hidden)} positives hidden among {counted} unlabelled", flush=True)
    for seed in given.seeds:
        found = {
            name: test.per_query(Ranker.load(trained(work, name, seed, given.base)))
            for name in ("clean", "planted", "denoised")
        }
        told = next((work / f"denoised.{seed}").rglob("dropped.jsonl")).read_text().splitlines()
        dropped = {(row["query_id"], row["doc_id"]) for row in map(json.loads, told)}
        right, wrong = len(dropped & hidden), len(dropped - hidden)
        print(f"seed {seed}: {right} hidden and {wrong} others taken out: of each", end=" ")
        print(f"{right / len(hidden):.2f} and {wrong / (counted - len(hidden)):.2f}")
        noisy = list(found["planted"].values())
        for name, values in found.items():
            here = list(values.values())
            p = ttest_rel(here, noisy).pvalue
            print(f"  {name}: {np.mean(here):.4f}, against planted p = {p:.3f}", flush=True)
    start = work / "start"
    if not start.exists():
        verb("warm", given.base, "-o", start)
    print(f"the start: {test(Ranker.load(start)):.4f}")


def several(groups: Groups) -> Iterator[Group]:
    """Those with more than one positive."""
    return (group for group in groups if sum(label > 0 for label in group.labels) > 1)


def plant(
    groups: list[Group], rng: np.random.Generator
) -> tuple[list[Group], set[tuple[str, str]]]:
    """The groups with a share of all positives hidden, at most one in each; and which these are."""
    positives = sum(label > 0 for group in groups for label in group.labels)
    chosen = set(rng.permutation(len(groups))[: int(SHARE * positives)].tolist())
    made, hidden = [], set()
    for number, group in enumerate(groups):
        if number in chosen:
            place = int(rng.choice([at for at, label in enumerate(group.labels) if label > 0]))
            hidden.add((group.query.id, group.documents[place].id))
            labels = list(group.labels)
            labels[place] = UNJUDGED
            group = replace(group, labels=tuple(labels))
        made.append(group)
    return made, hidden


def trained(work: Path, name: str, seed: int, base: str) -> Path:
    """The ranker of that name."""
    ranker = work / f"{name}.{seed}"
    if not ranker.exists():
        whole = Recipe.model_validate(tomllib.loads(RECIPE.read_text()))
        groups = "clean.parquet" if name == "clean" else "planted.parquet"
        phases = [one for one in whole.phases if name == "denoised" or one.phase != "denoise"]
        data = whole.data.model_copy(update={"train": (groups,)})
        recipe = whole.model_copy(update={"seed": seed, "data": data, "phases": tuple(phases)})
        written = work / f"{name}.{seed}.toml"
        written.write_text(resolved(recipe))
        asked = "-o", ranker, "--base", base, "--data", work, "--resume", "--device", "cpu"
        verb("train", written, *asked)
    return ranker


if __name__ == "__main__":
    main()
