"""`rerank --ray` on this machine: the same run, what it costs, and what it survives.

    python benchmarks/ray_rerank.py --work WORK                 100,000 pairs
    python benchmarks/ray_rerank.py --work WORK --queries 50    5,000 pairs

The ranker is that of benchmarks/rerank.py (all-MiniLM-L6-v2, OpenVINO bf16); the pairs are BM25's
top 100 of MS MARCO dev queries in the passages of TREC DL. Timed: the verb with all cores in one
process; the same on a Ray of its own with a worker per core; and once more while two workers are
killed, then the driver, and the command is given again. The machine must do nothing else.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from rerank import SHARED, machine, quiet, save_cross_encoder
from secondlook.data import read_run
from secondlook.score.export import export_ranker


def verb(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "secondlook", *map(str, arguments)]


def timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def prepare(work: Path, queries: int) -> list[object]:
    """What `rerank` is asked, but for the output."""
    ranker, index, first = work / "minilm", work / "index", work / f"first.{queries}.trec.gz"
    data = SHARED / "data"
    if not ranker.exists():
        save_cross_encoder(ranker)
        export_ranker(ranker, "openvino", "bf16")
    if not index.exists():
        timed(verb("index", data / "msmarco-dl" / "corpus.jsonl.gz", index))
    some = work / f"queries.{queries}.jsonl"
    [asked] = (data / "msmarco-dev-gold").glob("queries.jsonl*")
    with gzip.open(asked, "rt") if asked.suffix == ".gz" else asked.open() as lines:
        some.write_text("".join(line for line, _ in zip(lines, range(queries), strict=False)))
    if not first.exists():
        timed(verb("retrieve", index, some, "-k", 100, "-o", first))
    return ["rerank", first, "--index", index, "--queries", some, "--ranker", ranker]


def workers() -> list[psutil.Process]:
    """Ray's actors that score."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any("MapWorker" in part for part in process.info["cmdline"] or ())
    ]


def interrupted(command: list[str], parts: Path) -> dict[str, float]:
    """Two workers are killed, then the driver; the same command is given again."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    killed = 0

    def done() -> int:
        return len(list(parts.glob("*.done")))

    while killed < 2:
        seen = done()
        while done() < seen + 2:
            assert process.poll() is None, "it was over before it was killed"
            time.sleep(0.2)
        for worker in workers()[:1]:
            worker.send_signal(signal.SIGKILL)
            killed += 1
    seen = done()
    while done() < seen + 2:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(3)  # Ray's processes end with their driver
    kept = done()
    again = timed(command)
    return {
        "parts_done_before_the_driver_was_killed": kept,
        "seconds_with_kills": time.perf_counter() - began,
        "seconds_of_the_second_command": again,
    }


def differences(one: Path, other: Path) -> dict[str, float]:
    """How far two runs are apart."""
    most, moved = 0.0, 0
    for here, there in zip(read_run(one), read_run(other), strict=True):
        assert here.query_id == there.query_id
        scores = {hit.doc_id: hit.score for hit in there.hits}
        most = max(most, *(abs(hit.score - scores[hit.doc_id]) for hit in here.hits))
        moved += [hit.doc_id for hit in here.hits] != [hit.doc_id for hit in there.hits]
    return {"largest_difference": most, "queries_in_another_order": moved}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=1000)
    given = parser.parse_args()
    quiet()
    given.work.mkdir(parents=True, exist_ok=True)
    asked = prepare(given.work, given.queries)
    outputs = {name: given.work / f"{name}.trec" for name in ("here", "ray", "killed")}
    for path in outputs.values():
        path.unlink(missing_ok=True)
    pairs = 100 * given.queries
    report: dict[str, object] = {"machine": machine(), "pairs": pairs}
    here = timed(verb(*asked, "-o", outputs["here"]))
    there = timed(verb(*asked, "-o", outputs["ray"], "--ray", "local"))
    report |= {
        "one_process_pairs_per_second": pairs / here,
        "ray_pairs_per_second": pairs / there,
        "efficiency_with_start_up": here / there,
        **differences(outputs["here"], outputs["ray"]),
    }
    print(json.dumps(report, indent=2), flush=True)
    parts = outputs["killed"].parent / f".{outputs['killed'].name}.parts"
    report |= interrupted(verb(*asked, "-o", outputs["killed"], "--ray", "local"), parts)
    same = outputs["killed"].read_bytes() == outputs["ray"].read_bytes()
    report["killed_gives_the_same_bytes"] = same
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
