r"""`secondlook tune` from bi-encoders and cross-encoders, on several sets, with several seeds.

    python benchmarks/tune_bases.py --data DATA --work WORK --sets quickstart=examples/quickstart \
      insuranceqa nfcorpus scifact --bases MiniLM=all-MiniLM-L6-v2 cross=ms-marco-MiniLM-L12 \
      --seeds 7 --minutes 26
    python benchmarks/tune_bases.py --work WORK --table   # of all that is done by now

A set is a folder of DATA, or NAME=FOLDER; of its test queries the first --test count. Each tuning
prints one line of JSON, which WORK/SET.BASE.SEED.json keeps, and is passed over from then on; one
that was interrupted resumes at its last finished stage, and its minutes count anew. Sets, bases and
seeds may be given one by one, with the same WORK.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import secondlook as sl
from part import write_part
from secondlook.data.durable import write_at_once
from secondlook.data.splits import read_splits
from secondlook.model.checkpoint import open_checkpoint
from secondlook.terminal.bars import Bars
from secondlook.workflows.claim import claim

COLUMNS = ("set", "base", "seed", "test queries", "BM25", "untuned", "tuned")
TESTS = ("p against BM25", "p against untuned", "weights", "fusion")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=[], metavar="NAME[=FOLDER]")
    parser.add_argument("--bases", nargs="+", default=[], metavar="NAME=MODEL")
    parser.add_argument("--seeds", type=int, nargs="+", default=[7])
    parser.add_argument("--minutes", type=float, default=26.0)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--dev", type=int, default=200)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--table", action="store_true", help="print what is done as a table")
    given = parser.parse_args()
    if given.table:
        print(table(given.work))
        return
    for named in given.sets:
        name, _, folder = named.partition("=")
        data = part(given, name, Path(folder) if folder else given.data / name)
        for base in given.bases:
            for seed in given.seeds:
                with redirect_stdout(sys.stderr):  # standard output is for results
                    row = tuned(given, name, data, base, seed)
                print(json.dumps(row), flush=True)


def part(given: argparse.Namespace, name: str, source: Path) -> Path:
    """The set with fewer dev and test queries."""
    data = given.work / "data" / name
    limits = {"dev": given.dev, "test": given.test}
    asked = {f"{split} queries": (count, data) for split, count in limits.items()}
    claim(given.work / "data" / f"{name}.asked", asked)
    if not data.exists():
        write_part(source, data, limits)
    read_splits(data)  # what is wrong with it is said at once
    return data


def tuned(given: argparse.Namespace, name: str, data: Path, base: str, seed: int) -> dict[str, Any]:
    """The row of one tuning."""
    label, _, model = base.partition("=")
    output = given.work / f"{name}.{label}.{seed}"
    kept = output.with_name(f"{output.name}.json")
    if kept.exists():
        return dict(json.loads(kept.read_text("utf-8")))
    result = sl.tune(
        data,
        output,
        base=model,
        minutes=given.minutes,
        depth=given.depth,
        seed=seed,
        device="cpu",
        progress=Bars(),
    )
    comparison = result.comparison
    chosen = json.loads((output / "stages" / "chosen.json").read_text("utf-8"))
    fusion = open_checkpoint(output / "stages" / "tuned").settings.fusion
    [last], gain = comparison.tuned.differences, comparison.gain
    [first] = comparison.first_stage.runs[0].differences
    row = {
        "set": name,
        "base": label,
        "seed": seed,
        "test queries": comparison.first_stage.queries,
        "BM25": last.base,
        "untuned": first.new,
        "tuned": last.new,
        "p against BM25": last.adjusted,
        "p against untuned": gain and gain.runs[0].differences[0].adjusted,
        "weights": chosen["weights"],
        "fusion": fusion and fusion.weight,
        "validation": chosen["nDCG@10"],
    }
    write_at_once(kept, json.dumps(row))
    return row


def table(work: Path) -> str:
    """All tunings that are over, for a results page."""
    rows = [json.loads(path.read_text("utf-8")) for path in sorted(work.glob("*.*.*.json"))]
    columns = (*COLUMNS, *TESTS)
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        values = (row[column] for column in columns)
        shown = (f"{value:.4f}" if isinstance(value, float) else str(value) for value in values)
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
