r"""A student with half of a cross-encoder's layers, distilled for TREC DL without a judgment of it.

    python benchmarks/student.py --data DATA --teacher ms-marco-MiniLM-L12 --work WORK \
      --layers 6 --queries 12000 -o docs/results/runs

The student learns from queries of MS MARCO's dev set, questions of SQuAD and pieces of the passages
of DL 2021, in equal parts, over passages of these sets alone: nothing of 2019 or 2020 is learnt
from, and queries that nearly repeat one of theirs are left out. Then teacher and student
re-rank BM25's stored top 100 of each year. One line of JSON for each year has their nDCG@10, the
p-value of the difference and their speeds; run nothing beside it. Settings are to be chosen on
2021. Interrupted, the same command resumes; another setting takes another WORK.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from time import monotonic
from typing import TYPE_CHECKING

import secondlook as sl
from secondlook.data import read_corpus, read_queries, read_run, write_corpus, write_queries
from secondlook.data.near_duplicates import clusters
from secondlook.terminal.bars import Bars
from secondlook.types import Query
from secondlook.workflows.claim import claim
from secondlook.workflows.rerank import rerank
from two_rankers import SETS, candidates, qrels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.types import Document

MEASURE = "nDCG@10"
LEARNT_FROM = ("msmarco-dev-gold", "squad-passage", "msmarco-v2-dl21")
PIECES_OF = "msmarco-v2-dl21"
WORDS = (3, 8)
"""Of a passage, in a row, that stand for a query."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--student", help="to go on from, with all its layers")
    parser.add_argument("--sets", nargs="+", default=list(LEARNT_FROM), help="to learn from")
    parser.add_argument("--queries", type=int, default=12_000)
    parser.add_argument("--pool", type=int, default=50)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--loss", choices=["kl", "margin_mse"], default="margin_mse")
    parser.add_argument("--minutes", type=float, help="of training, at most")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", "-o", type=Path, help="for the student's runs")
    given = parser.parse_args()
    with redirect_stdout(sys.stderr):  # standard output is for results
        index = prepared(given)
        result = sl.distil(
            index,
            given.work / "queries.jsonl",
            given.work / "student",
            teacher=given.teacher,
            student=given.student or given.teacher,
            student_layers=None if given.student else given.layers,
            loss=given.loss,
            pool=given.pool,
            depth=given.depth,
            epochs=given.epochs,
            learning_rate=given.learning_rate,
            minutes=given.minutes,
            seed=given.seed,
            device="cpu",
            progress=Bars(),
        )
        print(result.summary())
    rankers = {"teacher": given.work / "student/stages/teacher", "student": result.ranker}
    for year in SETS:
        with redirect_stdout(sys.stderr):
            row = measured(given, year, rankers)
        print(json.dumps(row), flush=True)


def prepared(given: argparse.Namespace) -> Path:
    """The index of what is learnt from, and queries.jsonl beside it."""
    index, queries = given.work / "index", given.work / "queries.jsonl"
    asked = {"queries": given.queries, "seed": given.seed, "sets": " ".join(given.sets)}
    claim(given.work, {name: (value, queries) for name, value in asked.items()})
    corpus = given.work / "corpus.jsonl.gz"
    if not corpus.exists():
        write_corpus(corpus, documents(given.data, given.sets))
    if not index.exists():
        sl.build_index(corpus, index, progress=Bars())
    if not queries.exists():
        rng, each = random.Random(given.seed), given.queries // len(given.sets)
        chosen = []
        for name in given.sets:
            found = pieces(given.data, rng) if name == PIECES_OF else questions(given.data, name)
            chosen += rng.sample(found, min(each, len(found)))
        write_queries(queries, unlike_tested(chosen, given.data))
    return index


def documents(data: Path, sets: list[str]) -> Iterator[Document]:
    for name in sets:
        for document in read_corpus(data / name):
            yield replace(document, id=f"{name}-{document.id}")


def questions(data: Path, name: str) -> list[Query]:
    return [Query(f"{name}-{query.id}", query.text) for query in read_queries(data / name)]


def pieces(data: Path, rng: random.Random) -> list[Query]:
    """A few words in a row of each passage."""
    found = []
    for document in read_corpus(data / PIECES_OF):
        words, count = document.text.split(), rng.randint(*WORDS)
        if len(words) > count:
            start = rng.randrange(len(words) - count)
            found.append(Query(f"piece-{document.id}", " ".join(words[start : start + count])))
    return found


def unlike_tested(queries: list[Query], data: Path) -> list[Query]:
    """Those that do not nearly repeat a query that is tested."""
    tested = {
        query.id: query.text for name in set(SETS.values()) for query in read_queries(data / name)
    }
    alike = clusters({query.id: query.text for query in queries} | tested)
    taken = {alike[name] for name in tested}
    return [query for query in queries if alike[query.id] not in taken]


def measured(given: argparse.Namespace, year: str, rankers: dict[str, Path]) -> dict[str, object]:
    """Both rankers on BM25's candidates of that year."""
    data, index = given.data / SETS[year], given.work / f"{SETS[year]}.index"
    if not index.exists():
        sl.build_index(data / "corpus.jsonl.gz", index, progress=Bars())
    first, queries = candidates(given, year), next(data.glob("queries.jsonl*"))
    pairs = sum(len(ranking.hits) for ranking in read_run(first))
    judged = qrels(given, year)
    row: dict[str, object] = {"year": year, "queries": len(judged)}
    runs = {}
    for name, ranker in rankers.items():
        output = given.work / f"{year}.{name}.trec.gz"
        if not output.exists():
            began = monotonic()
            rerank(first, index, queries, ranker, output, progress=Bars())
            row[f"{name}, pairs per second"] = round(pairs / (monotonic() - began), 1)
        runs[name] = list(read_run(output))
        row[name] = sl.evaluate_run(judged, runs[name], measures=[MEASURE]).means[MEASURE]
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
        copyfile(given.work / f"{year}.student.trec.gz", given.output / f"{year}.student.trec.gz")
    tests = sl.compare(judged, runs["teacher"], runs["student"], measures=[MEASURE])
    row["p"] = tests.runs[0].differences[0].randomisation
    return row


if __name__ == "__main__":
    main()
