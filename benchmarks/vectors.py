"""What stored document vectors give: the same order, less time, and a better first stage.

    python benchmarks/vectors.py agree DATA BASE WORK --split test [--run RUN]
    python benchmarks/vectors.py latency DATA BASE WORK --split test
    python benchmarks/vectors.py hybrid DATA BASE WORK --split test [--ranker RANKER]
    python benchmarks/vectors.py million BASE WORK [--passages 1000000] [--kills 2]

DATA is a folder in BEIR's layout, BASE a bi-encoder's folder, WORK where indexes and runs are kept:
what is there is not made again, so that a killed run goes on. `agree` compares scores from stored
vectors with those of pairs, in each precision. `latency` times both in turns, 100 and 1,000
candidates for each query. `hybrid` compares first stages, and re-ranks BM25's and hybrid candidates
with RANKER. `million` builds an index of invented passages in a process that is killed, and tells
its memory, whether the bytes are those of a build that was not, and recall against exact search.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from hashlib import file_digest, sha256
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from secondlook.data import read_qrels, read_queries, read_run
from secondlook.evaluate.measures import evaluate
from secondlook.evaluate.significance import t_test
from secondlook.rank import rerank as rerank_rankings
from secondlook.retrieve.vector_files import ENCODER, FOLDER
from secondlook.retrieve.vectors import DocumentVectors
from secondlook.score.ranker import Ranker
from secondlook.score.vectors import VectorEncoder
from secondlook.types import Query, Ranking
from secondlook.workflows.choose_first_stage import choose_first_stage
from secondlook.workflows.index import build_index
from secondlook.workflows.open_index import open_index
from secondlook.workflows.rerank import rerank
from secondlook.workflows.retrieve import retrieve
from secondlook.workflows.vectors import add_vectors, stored_scorer_of
from secondlook.workflows.warm import warm

PRECISIONS = ("fp32", "fp16", "int8")
MEASURES = ("nDCG@10", "R@100")


def main() -> None:
    given = arguments().parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    given.do(given)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    for name, do in (("agree", agree), ("latency", latency), ("hybrid", hybrid)):
        verb = verbs.add_parser(name)
        verb.add_argument("data", type=Path)
        verb.add_argument("base", type=Path)
        verb.add_argument("work", type=Path)
        verb.add_argument("--split", default="test")
        verb.add_argument("--run", help="Candidates; default: BM25's of this index.")
        verb.add_argument("--ranker", help="Re-ranker of the candidates.")
        verb.add_argument("--queries", type=int, help="Only so many.")
        verb.set_defaults(do=do)
    verb = verbs.add_parser("million")
    verb.add_argument("base", type=Path)
    verb.add_argument("work", type=Path)
    verb.add_argument("--passages", type=int, default=1_000_000)
    verb.add_argument("--kills", type=int, default=2)
    verb.add_argument("--precision", choices=PRECISIONS, default="int8")
    verb.set_defaults(do=million)
    verb = verbs.add_parser("build")  # the process that `million` kills
    verb.add_argument("base", type=Path)
    verb.add_argument("work", type=Path)
    verb.add_argument("corpus", type=Path)
    verb.add_argument("--precision", choices=PRECISIONS, default="int8")
    verb.set_defaults(do=build)
    return parser


def file_of(data: Path, name: str) -> Path:
    return next(path for path in sorted(data.glob(f"{name}.jsonl*")))


def ranker_of(given: argparse.Namespace) -> Path:
    folder = given.work / "separate.ranker"
    if not folder.exists():
        warm(given.base, folder, separate_layers="all")
    return folder


def index_of(given: argparse.Namespace, precision: str = "fp32") -> Path:
    folder = given.work / f"{given.data.name}.{precision}.index"
    build_index(
        file_of(given.data, "corpus"),
        folder,
        vectors=ranker_of(given),
        vector_precision=precision,
    )
    return folder


def qrels_of(given: argparse.Namespace) -> Path:
    return given.data / "qrels" / f"{given.split}.tsv"


def queries_of(given: argparse.Namespace) -> list[Query]:
    judged = read_qrels(str(qrels_of(given)))
    found = read_queries(str(file_of(given.data, "queries")))
    return [query for query in found if query.id in judged][: given.queries]


def first_run(given: argparse.Namespace, index: Path, by: str = "bm25", k: int = 100) -> Path:
    path = given.work / f"{given.data.name}.{given.split}.{by}.trec"
    if not path.exists():
        queries = file_of(given.data, "queries")
        retrieve(index, queries, path, k=k, by=by, judged=qrels_of(given))
    return path


def agree(given: argparse.Namespace) -> None:
    """Kendall's τ and nDCG@10 of stored vectors against pairs."""
    index = index_of(given)
    run = given.run or first_run(given, index)
    qrels, queries = read_qrels(str(qrels_of(given))), file_of(given.data, "queries")
    output = given.work / f"{given.data.name}.{given.split}.pairs.trec"
    if not output.exists():
        rerank(run, index, queries, ranker_of(given), output, stored_vectors=False, depth=100)
    pairs = {one.query_id: one for one in read_run(str(output)) if one.query_id in qrels}
    base = evaluate(qrels, pairs.values(), ["nDCG@10"]).means["nDCG@10"]
    print(json.dumps({"data": given.data.name, "split": given.split, "pairs nDCG@10": base}))
    for precision in PRECISIONS:
        stored = given.work / f"{given.data.name}.{given.split}.{precision}.trec"
        if not stored.exists():
            rerank(run, index_of(given, precision), queries, ranker_of(given), stored, depth=100)
        found = {one.query_id: one for one in read_run(str(stored)) if one.query_id in qrels}
        taus = [tau(pairs[query_id], ranking) for query_id, ranking in found.items()]
        means = evaluate(qrels, found.values(), ["nDCG@10"]).means["nDCG@10"]
        figures = {"precision": precision, "tau": float(np.mean(taus)), "least": min(taus)}
        print(json.dumps(figures | {"nDCG@10": means, "difference": means - base}))


def tau(one: Ranking, other: Ranking) -> float:
    scores = {hit.doc_id: hit.score for hit in one.hits}
    own = [hit.score for hit in other.hits]
    if len(own) < 2:
        return 1.0
    return float(kendalltau([scores[hit.doc_id] for hit in other.hits], own).statistic)


def latency(given: argparse.Namespace) -> None:
    """The time of a query from vectors and from pairs, in turns; the query's encoding included."""
    index = open_index(index_of(given), by="bm25").engine
    ranker = Ranker.load(ranker_of(given))
    stored = stored_scorer_of(index, ranker_of(given))
    assert stored is not None
    queries = queries_of(given)[: given.queries or 40]
    seconds: dict[str, list[float]] = {}
    for query in queries:
        (found,) = index.retrieve([query], 1000)
        for depth in (100, 1000):
            candidates = found.top(depth)
            for name, scorer in (("vectors", stored), ("pairs", ranker)):
                if (name, depth) == ("pairs", 1000):
                    continue
                began = time.perf_counter()
                rerank_rankings([query], [candidates], index, scorer)
                seconds.setdefault(f"{name} {depth}", []).append(time.perf_counter() - began)
    for name, own in seconds.items():
        middle, tail = np.percentile(own[3:], [50, 95])
        print(json.dumps({"candidates": name, "p50 ms": 1e3 * middle, "p95 ms": 1e3 * tail}))
    ratio = np.median(seconds["pairs 100"][3:]) / np.median(seconds["vectors 100"][3:])
    print(json.dumps({"pairs / vectors, 100 candidates": float(ratio)}))


def hybrid(given: argparse.Namespace) -> None:
    """First stages, and what a ranker makes of their candidates."""
    index = index_of(given)
    qrels, queries = read_qrels(str(qrels_of(given))), file_of(given.data, "queries")
    runs = {by: first_run(given, index, by) for by in ("bm25", "vectors", "hybrid")}
    tuned = given.data / "qrels" / "train.tsv"
    if tuned.exists() and given.split != "train":
        chosen = choose_first_stage(index, queries, tuned, dry_run=True)
        print(json.dumps({"tuned on train": chosen.to_dict()}))
    if given.ranker:
        for by in ("bm25", "hybrid"):
            name = f"{by} + ranker"
            runs[name] = given.work / f"{given.data.name}.{given.split}.{by}.reranked.trec"
            if not runs[name].exists():
                rerank(runs[by], index, queries, given.ranker, runs[name], depth=100)
    tables = {}
    for name, path in runs.items():
        found = evaluate(qrels, list(read_run(str(path))), list(MEASURES))
        tables[name] = {m: np.array(list(found.per_query[m].values())) for m in MEASURES}
        print(json.dumps({"first stage": name} | found.means))
    for better, worse in (("hybrid", "bm25"), ("hybrid + ranker", "bm25 + ranker")):
        if better in tables:
            gains = {m: tables[better][m] - tables[worse][m] for m in MEASURES}
            told = {m: [float(own.mean()), t_test(own)] for m, own in gains.items()}
            print(json.dumps({f"{better} - {worse}": told}))


def million(given: argparse.Namespace) -> None:
    """Memory, kills, bytes, and recall of the graphs."""
    corpus = given.work / f"invented.{given.passages}.jsonl"
    if not corpus.exists():
        write_invented(corpus, given.passages)
    digests = {}
    for name, kills in (("killed", given.kills), ("straight", 0)):
        folder, peak, began = given.work / name, 0, time.monotonic()
        while not (folder / "index" / FOLDER / "vectors.json").exists():
            peak = max(peak, run_once(given, folder, corpus, kill=kills > 0))
            kills -= 1
        vectors = folder / "index" / FOLDER
        digests[name] = {
            path.name: digest(path)
            for path in sorted(vectors.iterdir())
            if path.is_file() and path.suffix != ".json"
        }
        told = {"build": name, "peak MB": peak >> 10, "seconds": time.monotonic() - began}
        print(json.dumps(told), flush=True)
    print(json.dumps({"same bytes": digests["killed"] == digests["straight"]}))
    recall(given.work / "straight" / "index")


def run_once(given: argparse.Namespace, folder: Path, corpus: Path, *, kill: bool) -> int:
    """Build, or be killed after some batches; the peak memory of the process, in kilobytes."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "build", str(given.base), str(folder), str(corpus)]
    process = subprocess.Popen([*command, "--precision", given.precision])
    state, peak = folder / "index" / f".{FOLDER}.half" / "progress.json", 0
    before = done(state)
    while process.poll() is None:
        peak = max(peak, memory(process.pid))
        if kill and done(state) > before + given.passages // 5:
            os.kill(process.pid, signal.SIGKILL)
        time.sleep(0.2)
    return peak


def done(state: Path) -> int:
    try:
        return int(json.loads(state.read_text())["documents"])
    except (OSError, ValueError, KeyError):
        return 0


def memory(process: int) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line), 0)


def build(given: argparse.Namespace) -> None:
    index, ranker = given.work / "index", given.work / "ranker"
    if not ranker.exists():
        warm(given.base, ranker, separate_layers="all")
    if not index.exists():
        build_index(given.corpus, index)
    add_vectors(index, given.corpus, ranker, precision=given.precision)


def write_invented(path: Path, passages: int) -> None:
    rng, letters = random.Random(0), "abcdefghijklmnopqrstuvwxyz"
    with path.open("w") as file:
        for number in range(passages):
            text = " ".join(rng.choices(letters, k=rng.randrange(5, 15)))
            file.write(json.dumps({"_id": str(number), "text": text}) + "\n")


def recall(index: Path) -> None:
    """Of the graphs' ten nearest against those of every row compared, and how long both take."""
    vectors = DocumentVectors(index)
    encoder = VectorEncoder.load(index / FOLDER / ENCODER)
    rng = random.Random(1)
    texts = [" ".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=10)) for _ in range(100)]
    queries = [Query(str(number), text) for number, text in enumerate(texts)]
    made = encoder.query_vectors(queries)
    shared, seconds = [], []
    for query, vector in zip(queries, made, strict=True):
        began = time.perf_counter()
        (near,) = vectors.retrieve([query], vector[None], 10)
        seconds.append(time.perf_counter() - began)
        scores = vectors._compare_all(vector[None])[0]
        best = {
            hit.doc_id for hit in vectors._ranking(query, np.arange(len(scores)), scores, 10).hits
        }
        shared.append(len(best & {hit.doc_id for hit in near.hits}) / 10)
    figures = {"recall@10": float(np.mean(shared)), "p95 ms": 1e3 * np.percentile(seconds, 95)}
    print(json.dumps(figures | {"rows": vectors.card.rows, "graphs": vectors.card.graphs}))


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, sha256).hexdigest()


if __name__ == "__main__":
    main()
