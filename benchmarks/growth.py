"""What `index`, `rerank` and `weigh` cost per document or pair as the corpus grows.

    python benchmarks/growth.py --work WORK -o docs/results            10^4, 10^5 and 10^6
    python benchmarks/growth.py --work WORK --sizes 1000 10000         a trial

For each size: so many passages of twelve made-up words (zipf_corpus.py) are indexed (bm25s) and
weighed, and as many pairs are re-ranked: a hundred random hits per query, so that texts come from
all over the store. Ranker and weigher are networks of two layers and 32 numbers with random
weights, so that a million is a matter of minutes: what is measured is how cost grows, not what a
real ranker costs.

Every verb runs in a process of its own, one thread each: for a hundred passages, so that all is
loaded; for these again, which is what a call costs however few there are; and for the size. Cost
per item is what the last took beyond the second, over the items beyond the hundred. Memory is told
twice: the peak of all that is resident, in which files that are mapped count as far as they were
touched (the system takes those pages back when it needs them), and the peak of what is the
process's own. Asked: cost per item, in time of the CPU, and own memory within 10% of each other
from the smallest size to the largest.

What is measured is kept in WORK/growth.json as it comes; the same command does only what is
missing. The machine must do nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent / "tests")]
os.environ["PYTHONPATH"] = str(HERE.parent / "src")  # of what is started, too

from secondlook.data import write_corpus, write_queries, write_run  # noqa: E402
from secondlook.types import Document, Hit, Query, Ranking  # noqa: E402
from zipf_corpus import texts  # noqa: E402

WORDS = 12
DEPTH = 100
START = 100  # passages: what a call costs however few
REPEATS = {1000: 3, 10_000: 3}  # of small sizes, whose times are short
WITHIN = 0.1
VERBS = ("index", "rerank", "weigh")
Figures = dict[str, float]
Measured = dict[str, dict[str, list[Figures]]]  # verb, size, repeats


def make_models(work: Path) -> None:
    import tiny
    from secondlook.model.deepct import new_weigher, save_weigher
    from secondlook.model.network import new_warm, save_model

    if (work / "weigher").exists():
        return
    base = tiny.save(tiny.encoder(), work / "base")
    if not (work / "ranker").exists():
        save_model(new_warm(base), work / "ranker")
    save_weigher(new_weigher(base, max_length=64), work / "weigher")


def make_data(folder: Path, size: int) -> None:
    """A corpus, and a run of as many hits."""
    if (folder / "first.trec").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    passages = enumerate(texts(size, WORDS, seed=1))
    write_corpus(folder / "corpus.jsonl", (Document(f"d{n}", text) for n, text in passages))
    asked = texts(max(1, size // DEPTH), 4, seed=2)
    queries = [Query(f"q{number}", text) for number, text in enumerate(asked)]
    write_queries(folder / "queries.jsonl", queries)
    write_run(folder / "first.trec", found(queries, size))


def found(queries: list[Query], size: int) -> Iterator[Ranking]:
    rng = random.Random(3)
    for query in queries:
        places = rng.sample(range(size), DEPTH)
        yield Ranking.of(query.id, [Hit(f"d{place}", -rank) for rank, place in enumerate(places)])


def commands(work: Path, folder: Path) -> dict[str, list[object]]:
    corpus, index = folder / "corpus.jsonl", folder / "index"
    return {
        "index": ["index", corpus, index, "--replace"],
        "rerank": [
            *("rerank", folder / "first.trec", "--index", index, "--ranker", work / "ranker"),
            *("--queries", folder / "queries.jsonl", "-o", folder / "second.trec", "--replace"),
        ],
        "weigh": [
            *("weigh", corpus, "--weigher", work / "weigher"),
            *("-o", folder / "weighed.jsonl", "--replace"),
        ],
    }


def run(verb: str, work: Path, size: int) -> Figures:
    """The verb in a process of its own; its seconds and its peaks of memory."""
    command = [sys.executable, __file__, "--work", str(work), "--stage", verb]
    process = subprocess.Popen(
        [*command, "--sizes", str(size)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    own = 0.0
    while process.poll() is None:
        own = max(own, memory_mb(process.pid, "RssAnon"))
        time.sleep(0.02)
    if process.returncode:
        sys.exit(f"secondlook {verb} failed: {process.returncode}")
    assert process.stdout is not None
    figures: Figures = json.loads(process.stdout.read().splitlines()[-1])
    return figures | {"peak_own_mb": own}


def stage(verb: str, work: Path, size: int) -> Figures:
    """In the process of its own: few, to load everything, the same few timed, then all."""
    from secondlook.cli import app

    def timed(count: int) -> tuple[float, float]:
        began, spent = time.perf_counter(), time.process_time()
        app(list(map(str, commands(work, work / str(count))[verb])), standalone_mode=False)
        return time.perf_counter() - began, time.process_time() - spent

    timed(START)
    (few_wall, few_cpu), (wall, cpu) = timed(START), timed(size)
    return {
        "call_seconds": few_wall,
        "us_per_item": 1e6 * (wall - few_wall) / (size - START),
        "cpu_us_per_item": 1e6 * (cpu - few_cpu) / (size - START),
        "peak_mb": memory_mb(os.getpid(), "VmHWM"),
    }


def memory_mb(process: int, which: str) -> float:
    """What Linux says: getrusage would count in what the parent had before it became the child."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = [line for line in lines if line.startswith(which)]
    return int(found[0].split()[1]) / 1000 if found else 0.0


def measure(work: Path, sizes: list[int], kept: Path) -> Measured:
    """Every verb at every size that is not in `kept` yet."""
    measured: Measured = json.loads(kept.read_text()) if kept.exists() else {}
    make_models(work)
    make_data(work / str(START), START)
    few = commands(work, work / str(START))["index"]  # `rerank` begins with this one
    subprocess.run([sys.executable, "-m", "secondlook", *map(str, few)], check=True)
    for size in sizes:
        folder = work / str(size)
        make_data(folder, size)
        for verb in VERBS:
            done = measured.setdefault(verb, {}).setdefault(str(size), [])
            while len(done) < REPEATS.get(size, 1):
                done.append(run(verb, work, size))
                half = kept.with_suffix(".half")
                half.write_text(json.dumps(measured, indent=1) + "\n")
                half.replace(kept)
                print(f"{verb:7} {size:>9,}  {done[-1]}", flush=True)
        for made in ("second.trec", "weighed.jsonl"):
            (folder / made).unlink(missing_ok=True)
        shutil.rmtree(folder / "index", ignore_errors=True)
    return measured


def summed(measured: Measured, sizes: list[int]) -> dict[str, Any]:
    """The median of each figure at each size, and how far apart the sizes are."""
    table: dict[str, Any] = {}
    for verb in VERBS:
        rows = []
        for size in sizes:
            runs = measured[verb][str(size)]
            rows.append({"items": size} | {k: median(one[k] for one in runs) for k in runs[0]})
        table[verb] = {"sizes": rows, "spread": spreads(rows)}
    return table


def spreads(rows: list[dict[str, float]]) -> dict[str, float]:
    """The largest over the smallest, less one."""
    return {
        name: max(row[name] for row in rows) / min(row[name] for row in rows) - 1
        for name in ("us_per_item", "cpu_us_per_item", "peak_mb", "peak_own_mb")
    }


def plot(table: dict[str, Any], path: Path) -> None:
    """Everything over what it was at the smallest size."""
    from rerank import drawn

    with drawn(path, 3.6) as axes:
        for verb, colour in zip(VERBS, ("#1b6ca8", "#d9822b", "#4f7a3a"), strict=True):
            rows = table[verb]["sizes"]
            for name, line in (("cpu_us_per_item", "-"), ("peak_own_mb", ":")):
                what = "cost per item" if line == "-" else "own memory, peak"
                axes.plot(
                    [row["items"] for row in rows],
                    [row[name] / rows[0][name] for row in rows],
                    line,
                    color=colour,
                    marker="o",
                    label=f"{verb}: {what}",
                )
        axes.axhspan(1 - WITHIN, 1 + WITHIN, color="#eee")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("documents (index, weigh), pairs (rerank)")
        axes.set_ylabel("over the smallest size")
        axes.set_title("Cost and memory as the corpus grows; grey: 10% either way")
        axes.legend(frameon=False, fontsize=8, ncols=2)


def show(table: dict[str, Any]) -> None:
    print("| verb | items | µs per item | µs of CPU per item | peak, MB | own, MB |")
    print("|---|---|---|---|---|---|")
    for verb, told in table.items():
        for row in told["sizes"]:
            print(
                f"| {verb} | {row['items']:,} | {row['us_per_item']:,.1f} | "
                f"{row['cpu_us_per_item']:,.1f} | {row['peak_mb']:,.0f} | "
                f"{row['peak_own_mb']:,.0f} |"
            )
    for verb, told in table.items():
        for name in ("cpu_us_per_item", "peak_own_mb"):
            spread = told["spread"][name]
            verdict = "flat" if spread <= WITHIN else f"NOT within {WITHIN:.0%}"
            print(f"{verb:7} {name:24} {spread:+.1%}  {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="for data, and what is measured")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("-o", "--output", type=Path, help="a folder for figures and plot")
    parser.add_argument("--stage", choices=VERBS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage:
        print(json.dumps(stage(given.stage, given.work, given.sizes[0])))
        return
    given.work.mkdir(parents=True, exist_ok=True)
    table = summed(measure(given.work, given.sizes, given.work / "growth.json"), given.sizes)
    show(table)
    if given.output:
        from rerank import machine

        given.output.mkdir(parents=True, exist_ok=True)
        report = {"machine": machine(), "words": WORDS, "depth": DEPTH, "verbs": table}
        (given.output / "growth.json").write_text(json.dumps(report, indent=2) + "\n")
        plot(table, given.output / "growth.svg")


if __name__ == "__main__":
    main()
