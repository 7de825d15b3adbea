r"""What choosing a fusion by a few queries costs or brings, against the re-ranker alone.

    python benchmarks/fusion_rule.py OUTPUT_OF_TUNE:untuned OUTPUT_OF_TUNE:trained --queries 50 100

The validation and test queries that `secondlook tune` re-ranked are divided anew, many times: some
to choose a fusion by, the rest to test it on. One line of JSON for each output and number has how
often the rule of `fuse tune` takes a fusion (it must be better than either input by more than two
standard errors), and what that, taking the best one in any case, and the better input alone bring
on the rest (nDCG@10 less that of the re-ranker alone, on average).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from secondlook.data import read_qrels, read_run
from secondlook.evaluate.cross_validation import cross_validate
from secondlook.score.fusion_choice import read_looks, tune, ways

if TYPE_CHECKING:
    from numpy.typing import NDArray

WAYS = ways(None)  # the first is the re-ranker alone
SIMPLE = np.array([way.simple for way in WAYS])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outputs", nargs="+", metavar="OUTPUT:RANKER")
    parser.add_argument("--queries", nargs="+", type=int, default=[50, 100])
    parser.add_argument("--times", type=int, default=150)
    given = parser.parse_args()
    for named in given.outputs:
        folder, _, ranker = named.partition(":")
        values = np.concatenate(
            [part(Path(folder) / "stages", name, ranker) for name in ("dev", "tested")], axis=1
        )
        for count in given.queries:
            row = {"output": Path(folder).name, "ranker": ranker, "queries": values.shape[1]}
            print(json.dumps(row | divided(values, count, given.times)), flush=True)


def part(stages: Path, name: str, ranker: str) -> NDArray[np.float64]:  # [ways, queries]
    """nDCG@10 of these queries by each way, over the candidates as they were re-ranked."""
    raw = list(read_run(stages / f"{name}.{ranker}.trec.gz"))
    judged = read_qrels(stages / "used" / f"{name}.tsv")
    by = json.loads((stages / "first_stage.json").read_text("utf-8"))["by"]
    looks = read_looks(read_run(stages / f"{name}.{by}.trec.gz"), raw, windows=False)
    return tune(looks, judged, WAYS, "nDCG@10", folds=5, seed=0).values


def divided(values: NDArray[np.float64], count: int, times: int) -> dict[str, float]:
    """Means over many divisions with `count` queries to choose by."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(times):
        order = rng.permutation(values.shape[1])
        known, rest = values[:, order[:count]], values[:, order[count:]]
        chosen = cross_validate(known, SIMPLE, 5, rng).best
        means = known.mean(axis=1)
        fused, input_alone = (
            int(np.where(wanted, means, -1).argmax()) for wanted in (~SIMPLE, SIMPLE)
        )
        gains = (rest - rest[0]).mean(axis=1)
        rows.append((not SIMPLE[chosen], gains[chosen], gains[fused], gains[input_alone]))
    names = ("fused", "by the rule", "best fusion in any case", "better input alone")
    means = np.array(rows, float).mean(axis=0).round(4)
    return {"to choose by": count} | dict(zip(names, means.tolist(), strict=True))


if __name__ == "__main__":
    main()
