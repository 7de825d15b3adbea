"""What a ranker is worth: five lists, each re-ranked and compared with BM25.

TREC DL 2019 and 2020 (BM25's stored top 100), InsuranceQA's own candidates, NFCorpus and SciFact.
Every step is a verb that users have; runs that are there already are not made again.

    python benchmarks/five_lists.py RANKER --data DATA --work WORK -o docs/results/runs --name cpu
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

from secondlook.data import read_qrels, read_queries, write_run
from secondlook.retrieve import open_index
from secondlook.types import Hit, Ranking

LISTS = {
    "dl19": ("msmarco-dl", "dl19"),
    "dl20": ("msmarco-dl", "dl20"),
    "insuranceqa": ("insuranceqa", "test"),
    "nfcorpus": ("nfcorpus", "test"),
    "scifact": ("scifact", "test"),
}


def verb(*arguments: object) -> str:
    """What a verb printed."""
    done = subprocess.run(
        [sys.executable, "-m", "secondlook", *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def queries_of(folder: Path) -> Path:
    return next(path for path in sorted(folder.glob("queries.jsonl*")))


def own_candidates(folder: Path, index: Path, run: Path, limit: int) -> None:
    """BM25's order of the published candidates, for the first so many test queries."""
    qrels = read_qrels(str(folder / "qrels" / "test.tsv"))
    pool: dict[str, set[str]] = {}
    with gzip.open(folder / "candidates" / "test.negatives.tsv.gz", "rt") as lines:
        for line in islice(lines, limit):
            query_id, negatives = line.rstrip("\n").split("\t")
            pool[query_id] = set(negatives.split()) | set(qrels[query_id])
    wanted = [query for query in read_queries(str(queries_of(folder))) if query.id in pool]
    engine = open_index(index)
    rankings = []
    for query in wanted:
        [found] = engine.retrieve([query], 30_000)
        hits = [hit for hit in found.hits if hit.doc_id in pool[query.id]]
        unseen = pool[query.id] - {hit.doc_id for hit in hits}  # no word of the query is in them
        hits += [Hit(doc_id, 0.0) for doc_id in sorted(unseen)]
        rankings.append(Ranking.of(query.id, hits))
    write_run(run, rankings, tag="bm25")


def first_look(name: str, data: Path, work: Path, asked: argparse.Namespace) -> tuple[Path, Path]:
    """The index, and BM25's run."""
    dataset, split = LISTS[name]
    folder, index = data / dataset, work / f"{dataset}.index"
    if not index.exists():
        verb("index", folder / "corpus.jsonl.gz", index)
    if name.startswith("dl"):
        return index, folder / "runs" / f"{name}.bm25.trec.gz"
    run = asked.output / f"{name}.bm25.trec.gz"
    if run.exists():
        return index, run
    if name == "insuranceqa":
        own_candidates(folder, index, run, asked.insurance_queries)
    else:
        judged = folder / "qrels" / f"{split}.tsv"
        verb("retrieve", index, queries_of(folder), "--judged", judged, "-k", 100, "-o", run)
    return index, run


def judged(name: str, data: Path, run: Path, work: Path) -> Path:
    """The judgments; InsuranceQA's only of the queries that are in the run."""
    dataset, split = LISTS[name]
    qrels = data / dataset / "qrels" / f"{split}.tsv"
    if name != "insuranceqa":
        return qrels
    with gzip.open(run, "rt") as lines:
        kept = {line.split(maxsplit=1)[0] for line in lines}
    head, *rows = qrels.read_text("utf-8").splitlines()
    some = work / "insuranceqa.some.tsv"
    some.write_text("\n".join([head, *(row for row in rows if row.split("\t")[0] in kept)]) + "\n")
    return some


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranker")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, required=True, help="for indexes")
    parser.add_argument("--output", "-o", type=Path, required=True, help="for runs")
    parser.add_argument("--name", required=True, help="of the ranker, in the runs' names")
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--insurance-queries", type=int, default=200)
    parser.add_argument("--lists", nargs="*", default=list(LISTS), choices=list(LISTS))
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    asked.work.mkdir(parents=True, exist_ok=True)
    for name in asked.lists:
        index, first = first_look(name, asked.data, asked.work, asked)
        second = asked.output / f"{name}.{asked.name}.trec.gz"
        if not second.exists():
            queries = queries_of(asked.data / LISTS[name][0])
            depth = () if name == "insuranceqa" else ("--depth", asked.depth)
            given = "--index", index, "--queries", queries, "--ranker", asked.ranker
            verb("rerank", first, *given, *depth, "-o", second)
        qrels = judged(name, asked.data, first, asked.work)
        told = json.loads(verb("compare", qrels, first, second, "-m", "nDCG@10", "--json"))
        print(name, json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
