r"""TREC DL by two rankers, fused as was best on DL 2021, tested on 2019 and 2020.

    python benchmarks/two_rankers.py --data DATA --first e5-small --second ms-marco-MiniLM-L12 \
      --work WORK -o docs/results/runs

BM25's stored top 100 of each year is scored once by each ranker. Scale and weight, in steps of .05,
are those with the highest nDCG@10 on DL 2021; neither 2019 nor 2020 is looked at before. They are
stored in the second ranker (WORK/second), so that re-ranking a run of the first with it gives the
fused ranking. Runs that are there are not made again, interrupted ones resume.

One line of JSON for each scale says what its best weight gives in every year, then one for each
year compares the scale and weight that were chosen with the second ranker alone. `--bm25` also
tries to give BM25 a share of the first ranker's score. `--years` and `--rankers` score only a part,
for a machine with little time: without a result until all parts are there.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import secondlook as sl
from secondlook.data import read_qrels, read_run, write_run
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.settings import FusionSettings
from secondlook.rank.fusion import Fusion, Scale, second_look
from secondlook.terminal.bars import Bars
from secondlook.train.start import make_start
from secondlook.workflows.claim import claim
from secondlook.workflows.export import export_for_speed
from secondlook.workflows.rerank import rerank

if TYPE_CHECKING:
    from secondlook.types import Ranking

MEASURE = "nDCG@10"
SETS = {"dl21": "msmarco-v2-dl21", "dl19": "msmarco-dl", "dl20": "msmarco-dl"}
CHOSEN_ON = "dl21"
RANKERS = ("first", "second")
WEIGHTS = [step / 20 for step in range(21)]
BM25 = [0.0, 0.1, 0.2, 0.3]
SCALES: tuple[Scale, ...] = ("z", "min-max", "ranks")


@dataclass(frozen=True)
class Way:
    """How scores are fused."""

    scale: Scale
    weight: float
    """Of the first ranker's score, against the second's."""
    bm25: float
    """BM25's share of the first ranker's score."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--first", required=True)
    parser.add_argument("--second", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", "-o", type=Path, help="for dl19.best and dl20.best")
    parser.add_argument("--years", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--rankers", nargs="+", choices=RANKERS, default=list(RANKERS))
    parser.add_argument("--bm25", action="store_true", help="give BM25 a share of the first, too")
    given = parser.parse_args()
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
    claim(given.work, {name: (getattr(given, name), given.work / name) for name in RANKERS})
    with redirect_stdout(sys.stderr):  # standard output is for results
        for name in given.rankers:
            for year in given.years:
                score(given, year, name)
    missing = [
        f"{year} by the {name}"
        for year in SETS
        for name in RANKERS
        if not scores_of(given, year, name).exists()
    ]
    if missing:
        sys.exit(f"not scored yet: {', '.join(missing)}")
    tell(given)


def score(given: argparse.Namespace, year: str, name: str) -> None:
    """BM25's candidates with the ranker's scores."""
    ranker, data = given.work / name, given.data / SETS[year]
    if scores_of(given, year, name).exists():
        return
    if not ranker.exists():
        make_start(getattr(given, name), ranker)
    export_for_speed(ranker, progress=Bars())
    index = given.work / f"{SETS[year]}.index"
    if not index.exists():
        sl.build_index(data / "corpus.jsonl.gz", index, progress=Bars())
    asked = candidates(given, year), index, next(data.glob("queries.jsonl*"))
    result = rerank(*asked, ranker, scores_of(given, year, name), raw=True, progress=Bars())
    print(result.summary())


def tell(given: argparse.Namespace) -> None:
    """The way that is best on one year, which is stored, and the figures of each; then the runs."""
    runs = {
        year: {name: list(read_run(scores_of(given, year, name))) for name in RANKERS}
        for year in SETS
    }
    words = {year: list(read_run(candidates(given, year))) for year in SETS}
    judged = {year: qrels(given, year) for year in SETS}

    def measured(year: str, run: list[Ranking]) -> float:
        return sl.evaluate_run(judged[year], run, measures=[MEASURE]).means[MEASURE]

    def fused(year: str, way: Way) -> list[Ranking]:
        first = rescored(words[year], runs[year]["first"], Fusion(way.bm25, way.scale))
        return rescored(first, runs[year]["second"], Fusion(way.weight, way.scale))

    best: dict[Way, float] = {}
    for scale in SCALES:
        ways = [Way(scale, w, b) for b in (BM25 if given.bm25 else BM25[:1]) for w in WEIGHTS]
        found = {way: measured(CHOSEN_ON, fused(CHOSEN_ON, way)) for way in ways}
        own = max(ways, key=found.__getitem__)
        best[own] = found[own]
        figures = {year: measured(year, fused(year, own)) for year in SETS}
        print(json.dumps(asdict(own) | figures), flush=True)
    chosen = max(best, key=best.__getitem__)
    if not chosen.bm25:  # a ranker is fused with one first stage
        settings = open_checkpoint(given.work / "second").settings
        fusion = FusionSettings(weight=chosen.weight, scale=chosen.scale)
        stored = settings.model_copy(update={"fusion": fusion})
        write_settings(given.work / "second", stored)
    for year, own_runs in runs.items():
        systems = own_runs | {"fused": fused(year, chosen)}
        row: dict[str, str | float] = {"year": year}
        row |= {system: measured(year, run) for system, run in systems.items()}
        tests = sl.compare(judged[year], own_runs["second"], systems["fused"], measures=[MEASURE])
        row["p of fused against second"] = tests.runs[0].differences[0].randomisation
        print(json.dumps(row), flush=True)
        if given.output and year != CHOSEN_ON:
            write_run(given.output / f"{year}.best.trec.gz", systems["fused"], tag="secondlook")


def candidates(given: argparse.Namespace, year: str) -> Path:
    return given.data / SETS[year] / "runs" / f"{year}.bm25.trec.gz"


def scores_of(given: argparse.Namespace, year: str, name: str) -> Path:
    return given.work / f"{year}.{name}.trec.gz"


def qrels(given: argparse.Namespace, year: str) -> dict[str, dict[str, int]]:
    return read_qrels(given.data / SETS[year] / "qrels" / f"{year}.tsv")


def rescored(first: list[Ranking], second: list[Ranking], fusion: Fusion) -> list[Ranking]:
    """The first rankings by their own scores and the second's, fused."""
    by_query = {ranking.query_id: ranking for ranking in second}
    made = []
    for ranking in first:
        scores = {hit.doc_id: hit.score for hit in by_query[ranking.query_id].hits}
        own = [scores[hit.doc_id] for hit in ranking.hits]
        made.append(second_look(ranking, own, fusion))
    return made


if __name__ == "__main__":
    main()
