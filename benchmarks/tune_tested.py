r"""Rankers that `tune` made, tested on more queries than it had time for.

    python benchmarks/tune_tested.py WORK/insuranceqa.cross.7 WORK/insuranceqa.cross.8 \
      --data DATA/insuranceqa --more 200 --work TESTED

The arguments are outputs of `tune` over the same data, with BM25 as their first stage. To the test
queries that `tune` took come the next ones of DATA, without those that (nearly) repeat a query of
another split, which may have been learnt from. BM25, the untuned and the tuned ranker are compared
on all of them as `tune` does: randomisation test, Holm over the three comparisons. One line of JSON
for each output. Interrupted, the same command resumes; another number of queries takes another
folder for --work.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.data import read_qrels, read_queries, read_run, write_qrels, write_run
from secondlook.data.near_duplicates import clusters
from secondlook.evaluate.tuned import compare_tuned
from secondlook.model.checkpoint import open_checkpoint
from secondlook.score.export_folder import fingerprint
from secondlook.terminal.bars import Bars
from secondlook.workflows.claim import claim
from secondlook.workflows.export import export_for_speed
from secondlook.workflows.rerank import rerank
from secondlook.workflows.retrieve import retrieve

if TYPE_CHECKING:
    from secondlook.types import Qrels

MEASURE = "nDCG@10"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outputs", type=Path, nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--more", type=int, default=200)
    parser.add_argument("--depth", type=int, default=20)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    judged = given.work / "more.tsv"
    claim(given.work, {name: (getattr(given, name), judged) for name in ("more", "depth")})
    if not judged.exists():
        known = read_qrels(given.outputs[0] / "stages" / "qrels" / "test.tsv")
        write_qrels(judged, further(given.data, known, given.more))
    for output in given.outputs:
        with redirect_stdout(sys.stderr):  # standard output is for results
            row = measured(given, output / "stages", judged)
        print(json.dumps({"output": output.name, **row}), flush=True)


def further(data: Path, tested: Qrels, count: int) -> Qrels:
    """The next test queries, of those that no other split has in nearly the same words."""
    texts = {query.id: query.text for query in read_queries(data)}
    others = [path for path in (data / "qrels").glob("*.tsv") if path.stem != "test"]
    alike = clusters(texts)
    known = {alike[query] for path in others for query in read_qrels(path) if query in alike}
    rest = read_qrels(data / "qrels" / "test.tsv").items()
    fresh = ((q, own) for q, own in rest if q not in tested and alike[q] not in known)
    return dict(islice(fresh, count))


def measured(given: argparse.Namespace, stages: Path, judged: Path) -> dict[str, Any]:
    """What the three rankings come to."""
    found = json.loads((stages / "first_stage.json").read_text("utf-8"))
    if found["by"] != "bm25":
        raise SystemExit(f"{stages}: its first stage is {found['by']}, and only BM25 is known here")
    queries, index = next(given.data.glob("queries.jsonl*")), stages / "index"
    first = given.work / "bm25.trec.gz"
    if not first.exists():
        retrieve(index, queries, first, k=given.depth, judged=judged, progress=Bars())
    same = fingerprint(open_checkpoint(stages / "untuned")).removeprefix("sha256:")[:8]
    more = {
        "bm25": first,
        "untuned": given.work / f"untuned.{same}.trec.gz",  # which seeds share
        "tuned": given.work / f"{stages.parent.name}.trec.gz",
    }
    for name in ("untuned", "tuned"):
        if not more[name].exists():
            export_for_speed(stages / name, progress=Bars())
            rerank(first, index, queries, stages / name, more[name], progress=Bars())
    runs = []
    for name, path in more.items():
        whole = [*read_run(stages / f"tested.{name}.trec.gz"), *read_run(path)]
        write_run(path.with_name(f"whole.{path.name}"), whole, tag=name)
        runs.append((name, whole))
    wanted = read_qrels(stages / "qrels" / "test.tsv") | read_qrels(judged)
    bm25, untuned, tuned = runs
    rng = np.random.default_rng(0)
    comparison = compare_tuned(wanted, bm25, untuned, tuned, [MEASURE], rng=rng)
    assert comparison.gain is not None
    [last], [gain] = comparison.tuned.differences, comparison.gain.runs[0].differences
    return {
        "test queries": comparison.first_stage.queries,
        "BM25": last.base,
        "untuned": gain.base,
        "tuned": gain.new,
        "p against BM25": last.adjusted,
        "p against untuned": gain.adjusted,
    }


if __name__ == "__main__":
    main()
