"""What STRM, markers, query types, adaptation, the losses and noise reduction are worth.

Two settings: (a) `encoder`, a joint cross-encoder with a new head, 40,000 pairs for every variant;
(b) `cross-encoder`, one whose head knows ranking already, 10,240 pairs. Two domains, see
`ablation_data.py`. All variants of a setting score the same number of pairs in as many steps
(docs/decisions/0183). The main contrasts have three seeds on NFCorpus and two on InsuranceQA,
the rest one.

    python benchmarks/ablation.py run OUTPUT --shared DATA   # killed, it goes on
    python benchmarks/ablation.py report OUTPUT              # of what is done by now
    python benchmarks/ablation.py tables OUTPUT              # those of docs/results/ablations.md
    python benchmarks/ablation.py grid OUTPUT                # what is trained, and what is done

`run` trains one variant at a time, those that tell most first, and at the end writes the report:
OUTPUT/report.md, with intervals, Holm-adjusted p-values, learning curves and the papers' examples
(`ablation_report.py`, `ablation_cases.py`). Each training that is over prints one line of JSON,
leaves `VARIANT.SEED.json` (figures) and `VARIANT.SEED.trec.gz` (its run over the test queries) in
OUTPUT/SETTING/DOMAIN, and is passed over from then on; these folders may be copied to another
machine. Started twice, two processes share the work; with OMP_NUM_THREADS=1
each has its core, and all machines of one kind of CPU make the same data.
`--settings`, `--domains`, `--variants` and `--seeds` choose a part of the grid.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ablation_data import DOMAINS, bases, prepare
from ablation_page import page_tables
from ablation_report import MAIN, REST, SEEDS, SETTINGS, cells, write_report
from secondlook.errors import OutputInUse
from secondlook.workflows.ablate import AblationTrainings, read_figures

DENOISED = "plain + denoise"
RECIPES = Path(__file__).parent.parent / "docs" / "results" / "recipes"


@dataclass(frozen=True)
class Training:
    """One cell of the grid."""

    setting: str
    domain: str
    variant: str
    seed: int


def grid() -> Iterator[Training]:
    """All trainings, those that tell most first."""
    first = (*MAIN, DENOISED)  # soon after the whole recipe, whose noise reduction it learns from
    rest = tuple(variant for variant in REST if variant != DENOISED)
    rounds = [("encoder", first, 1), ("cross-encoder", first, 1), ("encoder", rest, 1)]
    rounds += [("encoder", MAIN, 2), ("cross-encoder", rest, 1), ("cross-encoder", MAIN, 2)]
    rounds += [("encoder", MAIN, 3), ("cross-encoder", MAIN, 3)]
    for setting, variants, seed in rounds:
        for domain in DOMAINS:
            if seed in SEEDS[domain]:
                yield from (Training(setting, domain, variant, seed) for variant in variants)


def chosen(asked: argparse.Namespace) -> list[Training]:
    """What of the grid is asked for."""
    variants = set(asked.variants)
    if DENOISED in variants:
        variants.add("whole")  # it learns from what the whole recipe's noise reduction left
    return [
        cell
        for cell in grid()
        if cell.setting in asked.settings
        and cell.domain in asked.domains
        and cell.variant in variants
        and cell.seed in asked.seeds
    ]


def run(output: Path, shared: Path, recipes: Path, waiting: list[Training]) -> None:
    """Go through the grid; what another process is at, or what waits for it, is left to later."""
    base = bases(shared, output / "bases")
    trainings: dict[tuple[str, str], AblationTrainings] = {}
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
    """Whether it is over now, or can never begin."""
    if not trainings.can_begin(cell.variant, cell.seed):
        if trainings.kept("whole", cell.seed) is None:
            return False
        sys.stderr.write(
            f"passed over: {cell.variant}, seed {cell.seed}: the data that the whole recipe's "
            f"noise reduction left are not in {trainings.output}; remove whole.{cell.seed}.json "
            "there to make them again\n"
        )
        return True
    known = trainings.kept(cell.variant, cell.seed) is not None
    began = time.monotonic()
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            values = trainings.values(cell.variant, cell.seed)
    except OutputInUse:
        return False
    if not known:
        mean, minutes = float(np.mean(list(values.values()))), (time.monotonic() - began) / 60
        row = asdict(cell) | {trainings.measure: mean, "minutes": round(minutes, 1)}
        print(json.dumps(row), flush=True)
        if cell.seed > 1:
            shutil.rmtree(trainings.ranker(cell.variant, cell.seed))  # its run and figures stay
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "report", "tables", "grid"])
    parser.add_argument("output", type=Path)
    parser.add_argument(
        "--shared", type=Path, help="folder with nfcorpus, insuranceqa, query-types"
    )
    parser.add_argument("--recipes", type=Path, default=RECIPES)
    for name, of in {
        "settings": SETTINGS,
        "domains": list(DOMAINS),
        "variants": MAIN + REST,
    }.items():
        parser.add_argument(f"--{name}", nargs="+", choices=of, default=of)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    asked = parser.parse_args()
    if asked.what == "grid":
        for cell in chosen(asked):
            folder = asked.output / cell.setting / cell.domain
            over = read_figures(folder, cell.variant, cell.seed) is not None
            print(json.dumps(asdict(cell) | {"over": over}))
        return
    if asked.what == "tables":
        if not any(cells(asked.output)):
            sys.exit(f"{asked.output} has no figures of a plain recipe; give the OUTPUT of `run`")
        print("\n\n".join(page_tables(asked.output)))
        return
    if asked.what == "run":
        if asked.shared is None:
            sys.exit("give the folder with the data: --shared FOLDER")
        run(asked.output, asked.shared, asked.recipes, chosen(asked))
    sys.stderr.write(f"{write_report(asked.output)}\n")


if __name__ == "__main__":
    main()
