r"""What distillation without judgments is worth: taught against untaught student, and the teacher.

    python benchmarks/distil.py --data DATA --teacher ms-marco-MiniLM-L12 \
      --student all-MiniLM-L6-v2 --work WORK --sets scifact nfcorpus --seeds 7

Of a set's training queries only the texts are used; those that (nearly) repeat a test query are
left out. `secondlook.distil` teaches the student; then BM25's candidates of the test queries are
re-ranked by the untaught student, the taught one and the teacher, and the first two are compared.

Each set, loss and seed prints one line of JSON, which WORK/SET/LOSS-RATE-EPOCHS-SEED.json keeps,
and is passed over from then on. Every step before that keeps its result too: the same command
resumes. Sets, losses and seeds may be given one by one, with the same WORK.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import secondlook as sl
from secondlook.data import read_qrels, read_queries, read_run, write_qrels, write_queries
from secondlook.data.durable import write_at_once
from secondlook.data.near_duplicates import clusters
from secondlook.data.splits import read_splits, some
from secondlook.score.open_ranker import name_of
from secondlook.terminal.bars import Bars
from secondlook.workflows.claim import claim
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
    parser.add_argument("--losses", nargs="+", default=["kl"], choices=["kl", "margin_mse"])
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--test", type=int, default=200, help="test queries")
    parser.add_argument("--test-depth", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[7])
    given = parser.parse_args()
    for name in given.sets:
        for loss in given.losses:
            for seed in given.seeds:
                with redirect_stdout(sys.stderr):  # standard output is for results
                    row = measured(given, name, loss, seed)
                print(json.dumps(row), flush=True)


def measured(given: argparse.Namespace, name: str, loss: str, seed: int) -> dict[str, Any]:
    """The row of one distillation."""
    work = prepared(given, name)
    output = work / f"{loss}-{given.learning_rate:g}-{given.epochs:g}-{seed}"
    kept = output.with_name(f"{output.name}.json")
    if kept.exists():
        return dict(json.loads(kept.read_text("utf-8")))
    result = sl.distil(
        work / "index",
        work / "log.jsonl",
        output,
        teacher=given.teacher,
        student=given.student,
        loss=loss,
        pool=given.pool,
        depth=given.depth,
        epochs=given.epochs,
        learning_rate=given.learning_rate,
        seed=seed,
        device="cpu",
        progress=Bars(),
    )
    stages = output / "stages"
    teacher = stages / "teacher" if (stages / "teacher").exists() else given.teacher  # a URL
    rankers = {"untaught": stages / "untaught", "taught": result.ranker, "teacher": teacher}
    runs = {"BM25": work / "bm25.trec.gz"}
    for system, ranker in rankers.items():
        runs[system] = (output if system == "taught" else work) / f"{system}.trec.gz"
        if not runs[system].exists():
            asked = runs["BM25"], work / "index", work / "test.jsonl", ranker, runs[system]
            rerank(*asked, progress=Bars())
    row = {"set": name, "loss": loss, "seed": seed} | account(work / "test.tsv", runs)
    row |= {
        "training queries": result.queries["train"],
        "pairs scored by the teacher": result.pairs,
        "kept": result.kept,
        "Kendall untaught": result.untaught.kendall,
        "Kendall taught": result.taught.kendall,
    }
    write_at_once(kept, json.dumps(row))
    return row


def prepared(given: argparse.Namespace, name: str) -> Path:
    """The folder of the set: its index, queries to learn from, test queries and candidates."""
    work, data = given.work / name, given.data / name
    log, candidates = work / "log.jsonl", work / "bm25.trec.gz"
    asked: dict[str, tuple[str | int | None, Path]] = {
        "queries": (given.queries, log),
        "test queries": (given.test, log),
        "test depth": (given.test_depth, candidates),
        "teacher": (name_of(given.teacher), work / "teacher.trec.gz"),
        "student": (name_of(given.student), work / "untaught.trec.gz"),
    }
    claim(work, asked)
    if not (work / "index").exists():
        sl.build_index(next(data.glob("corpus.*")), work / "index", progress=Bars())
    if not log.exists():
        choose_queries(given, data, work)
    if not candidates.exists():
        retrieve(work / "index", work / "test.jsonl", candidates, k=given.test_depth)
    return work


def choose_queries(given: argparse.Namespace, data: Path, work: Path) -> None:
    """The texts of training queries, without judgments, and the test queries with theirs."""
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


if __name__ == "__main__":
    main()
