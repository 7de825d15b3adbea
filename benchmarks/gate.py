"""The false-positive rate of `secondlook compare`, and its power.

False positives: two runs made of one real run by adding independent noise to its scores, so that
they differ by chance only. Power: a real pair of runs, of which some queries are drawn at random.

    python benchmarks/gate.py QRELS BASE_RUN NEW_RUN... --trials 1000
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from secondlook.data import read_qrels, read_run
from secondlook.evaluate.compare import compare
from secondlook.evaluate.measures import DEFAULT_MEASURES
from secondlook.evaluate.significance import randomisation_test
from secondlook.types import Hit, Qrels, Ranking


def noisy(rankings: list[Ranking], rng: np.random.Generator) -> list[Ranking]:
    """The same hits, their scores moved by as much as they spread."""
    made = []
    for ranking in rankings:
        scores = np.array([hit.score for hit in ranking.hits])
        moved = scores + rng.normal(0, scores.std() / 2, len(scores))
        hits = [Hit(h.doc_id, s) for h, s in zip(ranking.hits, moved.tolist(), strict=True)]
        made.append(Ranking.of(ranking.query_id, hits))
    return made


def false_positives(qrels: Qrels, rankings: list[Ranking], trials: int) -> Counter[str]:
    said: Counter[str] = Counter()
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        base, new = (("base", noisy(rankings, rng)), ("new", noisy(rankings, rng)))
        said[compare(qrels, base, [new], DEFAULT_MEASURES, rng=rng).runs[0].verdict] += 1
    return said


def found_share(deltas: np.ndarray, queries: int, trials: int) -> float:
    rng = np.random.default_rng(queries)
    drawn = (rng.choice(deltas, queries) for _ in range(trials))
    return float(np.mean([randomisation_test(some, rng) <= 0.05 for some in drawn]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("qrels")
    parser.add_argument("base")
    parser.add_argument("new", nargs="*")
    parser.add_argument("--trials", type=int, default=1000)
    asked = parser.parse_args()
    qrels, rankings = read_qrels(asked.qrels), list(read_run(asked.base))
    said = false_positives(qrels, rankings, asked.trials)
    print(f"chance only, {asked.trials} trials: {dict(said)}", flush=True)
    for path in asked.new:
        rng = np.random.default_rng(0)
        found = compare(qrels, ("", rankings), [("", read_run(path))], ["nDCG@10"], rng=rng)
        [one] = found.runs[0].differences
        deltas = np.array(list(one.deltas.values()))
        shares = {n: found_share(deltas, n, asked.trials) for n in (10, 25, 50, 100, 200, 400)}
        print(f"{path}: nDCG@10 {one.delta:+.4f}, sd {deltas.std(ddof=1):.3f}, found: {shares}")


if __name__ == "__main__":
    main()
