r"""What choosing a fusion by a few queries costs or brings, against the re-ranker alone.

    python benchmarks/fusion_rule.py OUTPUT_OF_TUNE:untuned OUTPUT_OF_TUNE:untuned --queries 40 100

The validation and test queries that `secondlook tune` re-ranked are divided anew, many times: some
to choose a fusion by, the rest to test it on. One line of JSON for each output and number has what
each rule brings on the rest (nDCG@10 less that of the re-ranker alone, on average): the rule of
`fuse tune` (the mean of the best weights over bootstrap samples of queries); the best way that is
better than either input by more than two, by one or by no standard error (two was the rule until
version 0.2); and the better input alone. The last line of each number is the mean over outputs.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from secondlook.data import read_qrels, read_run
from secondlook.evaluate.cross_validation import best_of
from secondlook.score.fusion_choice import choose, read_looks, tune, ways

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TRIED = ways(None)
ALL = ways(None, ("min-max", "z", "ranks"))  # the first is the re-ranker alone
OURS = [ALL.index(way) for way in TRIED]
SIMPLE = np.array([way.simple for way in ALL])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outputs", nargs="+", metavar="OUTPUT:RANKER")
    parser.add_argument("--queries", nargs="+", type=int, default=[40, 100])
    parser.add_argument("--times", type=int, default=150)
    given = parser.parse_args()
    values = {named: whole(named) for named in given.outputs}
    for count in given.queries:
        rows = []
        for named, own in values.items():
            rows.append(divided(own, count, given.times))
            told = {"output": Path(named).name, "queries": own.shape[1], "to choose by": count}
            print(json.dumps(told | rows[-1]), flush=True)
        means = {rule: round(float(np.mean([row[rule] for row in rows])), 4) for rule in RULES}
        print(json.dumps({"output": "mean", "to choose by": count} | means), flush=True)


def whole(named: str) -> Floats:  # [ways, queries]
    """nDCG@10 of all queries by each way, over the candidates as they were re-ranked."""
    folder, _, ranker = named.partition(":")
    stages = Path(folder) / "stages"
    by = json.loads((stages / "first_stage.json").read_text("utf-8"))["by"]
    parts = []
    for name in ("dev", "tested"):
        raw = list(read_run(stages / f"{name}.{ranker}.trec.gz"))
        judged = read_qrels(stages / "used" / f"{name}.tsv")
        looks = read_looks(read_run(stages / f"{name}.{by}.trec.gz"), raw, windows=False)
        parts.append(tune(looks, judged, ALL, "nDCG@10", folds=5, seed=0).values)
    return np.concatenate(parts, axis=1)


def divided(values: Floats, count: int, times: int) -> dict[str, float]:
    """Means over many divisions with `count` queries to choose by."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(times):
        order = rng.permutation(values.shape[1])
        known, rest = values[:, order[:count]], values[:, order[count:]]
        gains = (rest - rest[0]).mean(axis=1)
        rows.append([gains[rule(known)] for rule in RULES.values()])
    return dict(zip(RULES, np.mean(rows, axis=0).round(4).tolist(), strict=True))


def bagged(known: Floats) -> int:
    return OURS[choose(TRIED, known[OURS], seed=0)]


def input_alone(known: Floats) -> int:
    return int(np.flatnonzero(SIMPLE)[best_of(known[SIMPLE])])


def surely(known: Floats, errors: float) -> int:
    """The best way, if it is better than the better input by so many standard errors."""
    best, plain = best_of(known), input_alone(known)
    gains = known[best] - known[plain]
    return best if gains.mean() > errors * gains.std(ddof=1) / np.sqrt(len(gains)) else plain


RULES: dict[str, Callable[[Floats], int]] = {
    "mean of the best weights": bagged,
    "by two errors": partial(surely, errors=2),
    "by one error": partial(surely, errors=1),
    "best way": partial(surely, errors=0),
    "better input alone": input_alone,
}


if __name__ == "__main__":
    main()
