r"""What distillation without judgments is worth: taught against untaught student, and the teacher.

    python benchmarks/distil.py --data DATA --teacher ms-marco-MiniLM-L12 \
      --student all-MiniLM-L6-v2 --work WORK --sets scifact nfcorpus

Of a set's training queries only the texts are used; those that (nearly) repeat a test query are
left out. `secondlook.distil` teaches the student; then BM25's candidates of the test queries are
re-ranked by the untaught student, the taught one and the teacher, and the first two are compared.
Every step keeps its result in WORK: the same command resumes. The table is written to
WORK/distil.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import secondlook as sl
from secondlook.data import read_qrels, read_queries, read_run, write_qrels, write_queries
from secondlook.data.near_duplicates import clusters
from secondlook.data.splits import read_splits, some
from secondlook.workflows.rerank import rerank
from secondlook.workflows.retrieve import retrieve

if TYPE_CHECKING:
    from collections.abc import Mapping

MEASURE = "nDCG@10"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--student", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["scifact", "nfcorpus"])
    parser.add_argument("--queries", type=int, default=240, help="to learn from and to hold out")
    parser.add_argument("--pool", type=int, default=40)
    parser.add_argument("--depth", type=int, default=20, help="candidates that the teacher scores")
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--loss", default="kl", choices=["kl", "margin_mse"])
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--test", type=int, default=200, help="test queries")
    parser.add_argument("--test-depth", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    rows = []
    for name in given.sets:
        rows.append(measured(given, name, given.data / name))
        (given.work / "distil.json").write_text(json.dumps(rows, indent=2), "utf-8")
        print(json.dumps(rows[-1]), flush=True)


def measured(given: argparse.Namespace, name: str, data: Path) -> dict[str, Any]:
    """The row of one set."""
    work = given.work / name
    work.mkdir(parents=True, exist_ok=True)
    index = work / "index"
    if not index.exists():
        sl.build_index(next(data.glob("corpus.*")), index)
    prepare(given, data, work)
    output = work / f"{given.loss}-{given.learning_rate:g}-{given.epochs:g}-{given.seed}"
    result = sl.distil(
        index,
        work / "log.jsonl",
        output,
        teacher=given.teacher,
        student=given.student,
        loss=given.loss,
        pool=given.pool,
        depth=given.depth,
        epochs=given.epochs,
        learning_rate=given.learning_rate,
        seed=given.seed,
        device="cpu",
        progress=told,
    )
    print(result.summary(), flush=True)
    candidates = work / "bm25.trec.gz"
    if not candidates.exists():
        retrieve(index, work / "test.jsonl", candidates, k=given.test_depth)
    runs = {"BM25": candidates}
    stages = output / "stages"
    rankers = {"untaught": stages / "untaught", "taught": output / "ranker"}
    for system, ranker in (rankers | {"teacher": stages / "teacher"}).items():
        run = (output if system == "taught" else work) / f"{system}.trec.gz"
        if not run.exists():
            rerank(candidates, index, work / "test.jsonl", ranker, run, progress=told)
        runs[system] = run
    return account(work / "test.tsv", runs) | {
        "set": name,
        "training queries": result.queries["train"],
        "pairs scored by the teacher": result.pairs,
        "kept": result.kept,
        "Kendall untaught": result.untaught.kendall,
        "Kendall taught": result.taught.kendall,
    }


def prepare(given: argparse.Namespace, data: Path, work: Path) -> None:
    """The texts of training queries, without judgments, and the test queries with theirs."""
    if (work / "log.jsonl").exists():
        return
    splits = read_splits(data)
    test = some(splits.test, given.test)
    texts = {query.id: query for query in read_queries(data)}
    alike = clusters({name: texts[name].text for name in {*splits.train, *splits.test}})
    tested = {alike[name] for name in splits.test}
    fresh = {name: {} for name in splits.train if alike[name] not in tested}
    write_qrels(work / "test.tsv", test)
    write_queries(work / "test.jsonl", [texts[name] for name in test])
    write_queries(work / "log.jsonl", [texts[name] for name in some(fresh, given.queries)])


def account(qrels: Path, runs: Mapping[str, Path]) -> dict[str, Any]:
    """nDCG@10 of all, and the tests against the untaught student."""
    judged = read_qrels(qrels)
    read = {system: list(read_run(run)) for system, run in runs.items()}
    row: dict[str, Any] = {"test queries": len(judged)}
    for system, rankings in read.items():
        row[system] = sl.evaluate_run(judged, rankings, measures=[MEASURE]).means[MEASURE]
    for system in ("taught", "teacher"):
        tests = sl.compare(judged, read["untaught"], read[system], measures=[MEASURE])
        difference = tests.runs[0].differences[0]
        row[f"p of {system} against untaught"] = difference.randomisation
    return row


def told(doing: str, done: int, total: int | None) -> None:
    """Progress, now and then."""
    if total is None or done in (0, total) or done % 500 == 0:
        sys.stderr.write(f"{doing} {done}/{total}\n")


if __name__ == "__main__":
    main()
