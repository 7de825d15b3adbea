r"""TREC DL by two rankers: z-scores fused with a weight found on DL 2021, tested on 2019 and 2020.

    python benchmarks/two_rankers.py --data DATA --first e5-small --second ms-marco-MiniLM-L12 \
      --work WORK -o docs/results/runs

BM25's stored top 100 of each year is scored once by each ranker. The weight, in steps of .05, is
the one with the highest nDCG@10 on DL 2021; neither 2019 nor 2020 is looked at before. It is stored
in the second ranker (WORK/second), so that re-ranking a run of the first with it gives the fused
ranking. Runs that are there are not made again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import secondlook as sl
from secondlook.data import read_qrels, read_run, write_run
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.settings import FusionSettings
from secondlook.rank.fusion import Fusion, second_look
from secondlook.train.start import make_start
from secondlook.workflows.export import export_for_speed
from secondlook.workflows.rerank import rerank

if TYPE_CHECKING:
    from secondlook.types import Ranking

MEASURE = "nDCG@10"
LISTS = {"dl21": "msmarco-v2-dl21", "dl19": "msmarco-dl", "dl20": "msmarco-dl"}
WEIGHTS = [step / 20 for step in range(21)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--first", required=True)
    parser.add_argument("--second", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", "-o", type=Path, help="for dl19.best and dl20.best")
    given = parser.parse_args()
    for name in ("first", "second"):
        if not (given.work / name).exists():
            make_start(getattr(given, name), given.work / name)
        export_for_speed(given.work / name)
    runs = {name: (scored(given, name, "first"), scored(given, name, "second")) for name in LISTS}
    weight = max(WEIGHTS, key=lambda weight: measured(given, "dl21", fused(*runs["dl21"], weight)))
    settings = open_checkpoint(given.work / "second").settings
    stored = settings.model_copy(update={"fusion": FusionSettings(weight=weight, scale="z")})
    write_settings(given.work / "second", stored)
    print(json.dumps({"weight of the first ranker, found on DL 2021": weight}))
    for name, (first, second) in runs.items():
        systems = {"first": first, "second": second, "fused": fused(first, second, weight)}
        figures = {system: measured(given, name, run) for system, run in systems.items()}
        tests = sl.compare(qrels(given, name), second, systems["fused"], measures=[MEASURE])
        p = tests.runs[0].differences[0].randomisation
        print(json.dumps({"list": name} | figures | {"p of fused against second": p}), flush=True)
        if given.output and name != "dl21":
            write_run(given.output / f"{name}.best.trec.gz", systems["fused"], tag="secondlook")


def scored(given: argparse.Namespace, name: str, ranker: str) -> list[Ranking]:
    """BM25's candidates with the ranker's scores."""
    data, run = given.data / LISTS[name], given.work / f"{name}.{ranker}.trec.gz"
    index = given.work / f"{LISTS[name]}.index"
    if not index.exists():
        sl.build_index(data / "corpus.jsonl.gz", index)
    if not run.exists():
        candidates = data / "runs" / f"{name}.bm25.trec.gz"
        queries = next(data.glob("queries.jsonl*"))
        print(rerank(candidates, index, queries, given.work / ranker, run, raw=True).summary())
    return list(read_run(run))


def qrels(given: argparse.Namespace, name: str) -> dict[str, dict[str, int]]:
    return read_qrels(given.data / LISTS[name] / "qrels" / f"{name}.tsv")


def measured(given: argparse.Namespace, name: str, run: list[Ranking]) -> float:
    return sl.evaluate_run(qrels(given, name), run, measures=[MEASURE]).means[MEASURE]


def fused(first: list[Ranking], second: list[Ranking], weight: float) -> list[Ranking]:
    """The rankings by `weight` of the first ranker's z-scores and the rest of the second's."""
    by_query = {ranking.query_id: ranking for ranking in second}
    made = []
    for ranking in first:
        scores = {hit.doc_id: hit.score for hit in by_query[ranking.query_id].hits}
        own = [scores[hit.doc_id] for hit in ranking.hits]
        made.append(second_look(ranking, own, Fusion(weight, "z")))
    return made


if __name__ == "__main__":
    main()
