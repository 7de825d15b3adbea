"""What STRM, markers, query types, adaptation, the losses and noise reduction are worth.

Two settings: (a) `encoder`, a joint cross-encoder with a new head, 40,000 pairs for every variant;
(b) `cross-encoder`, one whose head knows ranking already, 10,240 pairs. Two domains, see
`ablation_data.py`. All variants of a setting score the same number of pairs in as many steps
(docs/decisions/0183). The main contrasts have three seeds on NFCorpus and two on SQuAD, the rest
one.

    python benchmarks/ablation.py run OUTPUT --shared DATA       # killed, it goes on
    python benchmarks/ablation.py report OUTPUT > ablations.md   # of what is done by now
    python benchmarks/ablation.py curves OUTPUT --pictures FOLDER
    python benchmarks/ablation.py cases OUTPUT                   # DR-BERT's table 3

`run` trains one variant at a time, those that tell most first. Each that is over leaves
`VARIANT.SEED.json` (figures) and `VARIANT.SEED.trec.gz` (its run over the test queries), and is
passed over from then on. Started twice, two processes share the work.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ablation_data import DOMAINS, bases, prepare
from secondlook.errors import OutputInUse
from secondlook.evaluate.ablation import Part, contrast_table, contrasts
from secondlook.workflows.ablate import AblationTrainings, read_figures, slug

RECIPES = Path(__file__).parent.parent / "docs" / "results" / "recipes"
SETTINGS = ("encoder", "cross-encoder")
MAIN = ("plain", "plain + STRM", "plain + markers", "plain + types", "whole")
REST = ("plain + adapt", "plain + listwise", "listwise only", "plain + denoise")
SEEDS = {"nfcorpus": (1, 2, 3), "squad": (1, 2)}
PARTS = {
    "STRM": "plain + STRM",
    "markers": "plain + markers",
    "query types": "plain + types",
    "adapt": "plain + adapt",
    "noise reduction": "plain + denoise",
    "listwise instead of pointwise": "listwise only",
    "pointwise, then listwise": "plain + listwise",
    "all of it": "whole",
}
"""Each part and the recipe that has it; `plain`, the pointwise phase alone, lacks them all."""


@dataclass(frozen=True)
class Training:
    """One cell of the grid."""

    setting: str
    domain: str
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.setting}, {self.domain}, {self.variant}, seed {self.seed}"


EXACT = 0.75
"""From this share of a query's terms in a relevant candidate on, it is an exact-match query."""
CASES = [
    ("what is bogue", "Bogus means not genuine: a bogus claim is false, and bogus money is fake."),
    ("insouciantly meaning", "In an insurance contract, in the sense of the act, ins is insured."),
]
"""DR-BERT's two words of figure 1, each with a text that shares sub-tokens with it and no more."""
OTHERS = 100


def grid() -> Iterator[Training]:
    """All trainings, those that tell most first."""
    rounds = [("encoder", MAIN, 1), ("cross-encoder", MAIN, 1), ("encoder", REST, 1)]
    rounds += [("encoder", MAIN, 2), ("cross-encoder", REST, 1), ("cross-encoder", MAIN, 2)]
    rounds += [("encoder", MAIN, 3), ("cross-encoder", MAIN, 3)]
    for setting, variants, seed in rounds:
        for domain in DOMAINS:
            if seed in SEEDS[domain]:
                yield from (Training(setting, domain, variant, seed) for variant in variants)


def run(output: Path, shared: Path, recipes: Path) -> None:
    """Go through the grid; what another process is at, or what waits for it, is left to later."""
    base = bases(shared, output / "bases")
    trainings: dict[tuple[str, str], AblationTrainings] = {}
    waiting = list(grid())
    while waiting:
        left = []
        for cell in waiting:
            where = (cell.setting, cell.domain)
            if where not in trainings:
                data = prepare(DOMAINS[cell.domain], shared, output / "data")
                trainings[where] = AblationTrainings.of(
                    recipes / f"ablation-{cell.setting}.toml",
                    output / cell.setting / cell.domain,
                    data / "test.parquet",
                    base=base[cell.setting],
                    data=data,
                    device="cpu",
                )
            if not _train(trainings[where], cell):
                left.append(cell)
        if len(left) == len(waiting):
            time.sleep(60)
        waiting = left


def _train(trainings: AblationTrainings, cell: Training) -> bool:
    """Whether it is over now."""
    if not trainings.can_begin(cell.variant, cell.seed):
        return False
    known = trainings.kept(cell.variant, cell.seed) is not None
    began = time.monotonic()
    try:
        values = trainings.values(cell.variant, cell.seed)
    except OutputInUse:
        return False
    if not known:
        mean, minutes = np.mean(list(values.values())), (time.monotonic() - began) / 60
        at = time.strftime("%H:%M:%S")
        print(f"{at} {cell}: {trainings.measure} {mean:.4f}, {minutes:.1f} minutes", flush=True)
        if cell.seed > 1:
            shutil.rmtree(trainings.ranker(cell.variant, cell.seed))  # its run and figures stay
    return True


def figures_of(output: Path, setting: str, domain: str) -> dict[str, dict[int, dict[str, float]]]:
    """Variant → seed → query → value, of the trainings that are over."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for variant in (*MAIN, *REST):
        for seed in SEEDS[domain]:
            if kept := read_figures(output / setting / domain, variant, seed):
                found.setdefault(variant, {})[seed] = kept["values"]
    return found


def targets(facets: Mapping[str, Mapping[str, str | float]]) -> list[Part]:
    """The parts on the queries that they are meant for, and on the others."""
    split = {query for query, known in facets.items() if float(known["split words"]) > 0}
    share = {
        query: float(known["terms in a relevant candidate"]) for query, known in facets.items()
    }
    exact = {query for query, held in share.items() if held >= EXACT}
    chosen = [
        ("STRM", "queries with split words", split),
        ("STRM", "other queries", set(facets) - split),
        ("markers", "a relevant candidate holds three quarters of the terms", exact),
        ("markers", "other queries", set(facets) - exact),
    ]
    for kind in sorted({str(known["type"]) for known in facets.values()}):
        of_kind = {query for query, known in facets.items() if known["type"] == kind}
        chosen.append(("query types", kind, of_kind))
    return [Part(f"{part}: {which}", PARTS[part], "plain", some) for part, which, some in chosen]


def report(output: Path) -> Iterator[str]:
    """Tables of what is done, for every setting and domain."""
    for setting in SETTINGS:
        for domain in DOMAINS:
            figures = figures_of(output, setting, domain)
            if "plain" not in figures:
                continue
            yield f"## {setting}, {domain}\n"
            yield "| variant | nDCG@10 by seed | mean |\n|---|---|---|"
            for variant, seeds in figures.items():
                means = [float(np.mean(list(values.values()))) for values in seeds.values()]
                shown = ", ".join(f"{mean:.4f}" for mean in means)
                yield f"| {variant} | {shown} | {np.mean(means):.4f} |"
            facets = json.loads((output / "data" / domain / "facets.json").read_text("utf-8"))
            everywhere = [Part(name, having, "plain") for name, having in PARTS.items()]
            for parts in (everywhere, targets(facets)):
                rows = contrasts(figures, parts, np.random.default_rng(0))
                yield "\n" + contrast_table(rows, "nDCG@10")


def curves(output: Path, pictures: Path) -> None:
    """Draw the measure on the validation queries over the steps, seed 1: a picture a cell."""
    from secondlook.evaluate.curve import plotted

    pictures.mkdir(parents=True, exist_ok=True)
    for setting in SETTINGS:
        for domain in DOMAINS:
            folder = output / setting / domain
            kept = {variant: read_figures(folder, variant, 1) for variant in (*MAIN, *REST)}
            if not any(kept.values()):
                continue
            with plotted(pictures / f"{setting}-{domain}.svg", "step", "nDCG@10") as axes:
                for variant, figures in kept.items():
                    points, before = [], 0.0
                    for phase in figures["history"] if figures else ():
                        measured = [p for p in phase["points"] if "nDCG@10" in p]
                        points += [(before + p["step"], p["nDCG@10"]) for p in measured]
                        before = points[-1][0] if measured else before
                    if points:
                        axes.plot(*zip(*points, strict=True), marker=".", label=variant)


def cases(output: Path) -> Iterator[str]:
    """DR-BERT's table 3: score and rank of texts that only seem to match, without and with STRM."""
    from secondlook.score.ranker import Ranker
    from secondlook.train.groups import Groups
    from secondlook.types import Document, Query

    yield f"| setting | query | variant | score | rank among {OTHERS} others |"
    yield "|---|---|---|---|---|"
    for setting in SETTINGS:
        for domain in DOMAINS:
            groups = Groups([output / "data" / domain / "test.parquet"])
            others = [groups[at].documents[0] for at in range(OTHERS)]
            for variant in ("plain", "plain + STRM"):
                trained = output / setting / domain
                if read_figures(trained, variant, 1) is None:
                    continue
                ranker = Ranker.load(trained / f"{slug(variant)}.1", device="cpu")
                for text, alike in CASES:
                    pairs = [(Query("q", text), one) for one in (Document("", alike), *others)]
                    scores = ranker.score(pairs)
                    rank = 1 + int((scores[1:] > scores[0]).sum())
                    row = f"{setting}, {domain} | {text} | {variant} | {scores[0]:.3f} | {rank}"
                    yield f"| {row} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "report", "grid", "curves", "cases"])
    parser.add_argument("output", type=Path)
    parser.add_argument("--shared", type=Path, help="folder with nfcorpus, squad-passage, …")
    parser.add_argument("--recipes", type=Path, default=RECIPES)
    parser.add_argument("--pictures", type=Path, default=Path("curves"), help="for `curves`")
    asked = parser.parse_args()
    if asked.what == "run":
        if asked.shared is None:
            sys.exit("give the folder with the data: --shared FOLDER")
        run(asked.output, asked.shared, asked.recipes)
    elif asked.what == "grid":
        print("\n".join(map(str, grid())))
    elif asked.what == "curves":
        curves(asked.output, asked.pictures)
    else:
        made = report if asked.what == "report" else cases
        print("\n".join(made(asked.output)))


if __name__ == "__main__":
    main()
