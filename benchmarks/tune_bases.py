r"""`secondlook tune` from bi-encoders and cross-encoders, on several sets, with several seeds.

    python benchmarks/tune_bases.py --data DATA --work WORK --sets quickstart=examples/quickstart \
      insuranceqa nfcorpus scifact --bases MiniLM=all-MiniLM-L6-v2 cross=ms-marco-MiniLM-L12 \
      --seeds 7 --minutes 26

A set is a folder of DATA, or NAME=FOLDER; of its test queries the first --test count. Every tuning
is a call of the command, which resumes; one that is finished is not called again. The table is
printed and written to WORK/tune_bases.json after each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from secondlook.data.splits import read_splits

PART = Path(__file__).parent / "part.py"
NOT_SHIPPED = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", required=True, metavar="NAME[=FOLDER]")
    parser.add_argument("--bases", nargs="+", required=True, metavar="NAME=MODEL")
    parser.add_argument("--seeds", type=int, nargs="+", default=[7])
    parser.add_argument("--minutes", type=float, default=26.0)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--dev", type=int, default=60)
    parser.add_argument("--test", type=int, default=200)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for named in given.sets:
        name, _, folder = named.partition("=")
        data = part(given, name, Path(folder) if folder else given.data / name)
        for base in given.bases:
            for seed in given.seeds:
                rows.append(tuned(given, name, data, base, seed))
                (given.work / "tune_bases.json").write_text(json.dumps(rows, indent=2), "utf-8")
                print(line(rows[-1]), flush=True)


def part(given: argparse.Namespace, name: str, source: Path) -> Path:
    """The set with fewer dev and test queries."""
    data = given.work / "data" / name
    if not data.exists():
        there = {path.stem for path in (source / "qrels").glob("*.tsv")}
        limits = {"dev": given.dev, "test": given.test}
        first = [f"--first={split}={limits[split]}" for split in limits if split in there]
        command = [sys.executable, str(PART), str(source), "-o", str(data), *first]
        subprocess.run(command, check=True)
    read_splits(data)  # what is wrong with it is said at once
    return data


def tuned(given: argparse.Namespace, name: str, data: Path, base: str, seed: int) -> dict[str, Any]:
    """The row of one tuning."""
    label, _, model = base.partition("=")
    output = given.work / f"{name}.{label}.{seed}"
    verdict = output / "verdict.json"
    if not verdict.exists():
        command = [sys.executable, "-m", "secondlook", "tune", str(data), "-o", str(output)]
        command += ["--base", model, "--seed", str(seed), "--depth", str(given.depth)]
        command += ["--minutes", str(given.minutes), "--device", "cpu"]
        code = subprocess.run(command, check=False).returncode
        if code not in (0, NOT_SHIPPED):
            sys.exit(code)
    told = json.loads(verdict.read_text("utf-8"))
    chosen = json.loads((output / "stages" / "chosen.json").read_text("utf-8"))
    by_run = {run["run"]: run["differences"][0] for run in told["runs"]}
    last, gain = by_run["tuned"], told["against_untuned"]
    return {
        "set": name,
        "base": label,
        "seed": seed,
        "BM25": last["base"],
        "untuned": by_run.get("untuned", last)["new"],
        "tuned": last["new"],
        "p against BM25": last["adjusted"],
        "p against untuned": gain and gain["runs"][0]["differences"][0]["adjusted"],
        "weights": chosen["weights"],
    }


def line(row: dict[str, Any]) -> str:
    """For a Markdown table."""
    shown = (f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values())
    return f"| {' | '.join(shown)} |"


if __name__ == "__main__":
    main()
