"""What stored document vectors give: the same order, less time, and a better first stage.

    python benchmarks/vectors.py --list
    python benchmarks/vectors.py WORK PART...            the named parts, such as same-order/dl19
    python benchmarks/vectors.py WORK all                all of them, one after the other
    python benchmarks/vectors.py WORK all --share .01    a trial of every part, in a minute or two

Each part prints one line of JSON and adds it to WORK/figures.jsonl; a part that stands there is
printed, not run. Indexes, rankers and runs are kept in WORK: a part that was killed goes on. Data
and weights are those of ../shared, or where SECONDLOOK_SHARED says. Nothing else should run.

same-order/SET       stored vectors (fp32, fp16, int8) against pairs (OpenVINO fp32): Kendall's tau
                     of each query's order, and nDCG@10
speed                one query from vectors and from pairs, in turns, its encoding included
states               pairs a second from stored states, three quarters of the layers separate, and
                     from pairs, in turns; bytes per passage (vectors_states.py)
server               queries a second of /v1/search by vectors and by pairs, nDCG@10 of the answers
hybrid/SET           BM25, vectors and both, alone and re-ranked (vectors_hybrid.py)
cluster/SET          the same on three OpenSearch nodes with k-NN, beside the figures of hybrid/SET
attention/SET/SEED   `tune` with cross-attention and without, gates (vectors_attention.py)
million              a build that is killed twice: memory, bytes, recall (vectors_scale.py)
node-kill            50,000 vectors are loaded while one node of three is killed
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent / "tests")]

import httpx  # noqa: E402
import numpy as np  # noqa: E402
from scipy.stats import kendalltau  # noqa: E402

from rerank import SHARED, machine, quiet  # noqa: E402
from secondlook.data import read_qrels  # noqa: E402
from secondlook.evaluate.measures import evaluate  # noqa: E402
from secondlook.rank import rerank as rerank_rankings  # noqa: E402
from secondlook.retrieve.hybrid import FirstStageChoice, write_choice  # noqa: E402
from secondlook.score.ranker import Ranker  # noqa: E402
from secondlook.types import Hit, Query, Ranking  # noqa: E402
from secondlook.workflows.index import build_index  # noqa: E402
from secondlook.workflows.open_index import open_index  # noqa: E402
from secondlook.workflows.rerank import rerank  # noqa: E402
from secondlook.workflows.vectors import stored_scorer_of  # noqa: E402
from serve import server  # noqa: E402
from vectors_attention import attention  # noqa: E402
from vectors_bench import (  # noqa: E402
    Bench,
    by_query,
    file_of,
    gain,
    in_precision,
    percentiles,
    values,
)
from vectors_hybrid import SETS, hybrid, on_cluster  # noqa: E402
from vectors_scale import million, node_kill  # noqa: E402
from vectors_states import states  # noqa: E402

Part = Callable[[Bench], dict[str, Any]]
DL = "msmarco-dl"
SAME_ORDER = {
    "dl19": (DL, "dl19", 500),
    "dl20": (DL, "dl20", 500),
    "scifact": ("scifact", "test", 100),
}
"""Set and split, and how many queries at most: pairs in fp32 take long."""
CLIENTS = 8


def same_order(bench: Bench, name: str, split: str, most: int) -> dict[str, Any]:
    """Kendall's tau and nDCG@10 of stored vectors against pairs."""
    index, ranker, queries = bench.index(name), bench.separate_ranker(), bench.query_file(name)
    qrels = bench.judged(name, split, min(most, bench.queries))
    candidates = bench.data(name) / "runs" / f"{split}.bm25.trec.gz"
    if not candidates.exists():
        candidates = bench.run(name, index, qrels, "bm25", "bm25")
    paired = bench.work / f"{name}.{split}.pairs.trec"
    if not paired.exists():
        given: dict[str, Any] = {"backend": "openvino", "precision": "fp32", "depth": 100}
        rerank(candidates, index, queries, ranker, paired, stored_vectors=False, **given)
    pairs = by_query(paired, qrels)
    figures: dict[str, Any] = {"queries": len(pairs)}
    figures["pairs"] = {"nDCG@10": values(paired, qrels, "nDCG@10").mean()}
    for precision in ("fp32", "fp16", "int8"):
        own = index if precision == "fp32" else in_precision(index, precision)
        stored = bench.work / f"{name}.{split}.{precision}.trec"
        if not stored.exists():
            result = rerank(candidates, own, queries, ranker, stored, depth=100)
            assert result.by_vectors
        taus = [tau(pairs[key], one) for key, one in by_query(stored, qrels).items()]
        mean = values(stored, qrels, "nDCG@10").mean()
        figures[precision] = {"tau mean": np.mean(taus), "tau least": min(taus), "nDCG@10": mean}
        figures[precision]["difference"] = mean - figures["pairs"]["nDCG@10"]
    return figures | {"all queries": by_precision(bench, name, split)}


def by_precision(bench: Bench, name: str, split: str) -> dict[str, Any]:
    """nDCG@10 over all judged queries, by vectors alone: what fp16 and int8 change in fp32's."""
    index, ranker, qrels = bench.index(name), bench.separate_ranker(), bench.judged(name, split)
    found = bench.run(name, index, qrels, "bm25", "bm25")
    measured = {}
    for precision in ("fp32", "fp16", "int8"):
        own = index if precision == "fp32" else in_precision(index, precision)
        stored = bench.run_file(own, qrels, "reranked")
        if not stored.exists():
            rerank(found, own, bench.query_file(name), ranker, stored, depth=100)
        measured[precision] = values(stored, qrels, "nDCG@10")
    figures: dict[str, Any] = {"queries": len(measured["fp32"])}
    for precision, own_values in measured.items():
        more = own_values - measured["fp32"]
        figures[precision] = {"nDCG@10": own_values.mean()} | gain(more)
    return figures


def tau(one: Ranking, other: Ranking) -> float:
    """Kendall's tau of two orders of the same documents."""
    scores = {hit.doc_id: hit.score for hit in one.hits}
    assert scores.keys() == {hit.doc_id for hit in other.hits}
    if len(scores) < 2:
        return 1.0
    own = [hit.score for hit in other.hits]
    return float(kendalltau([scores[hit.doc_id] for hit in other.hits], own).statistic)


def speed(bench: Bench) -> dict[str, Any]:
    """Milliseconds of a query from vectors and from pairs, in turns."""
    index = open_index(bench.index(DL), by="bm25").engine
    ranker, stored = (
        Ranker.load(bench.separate_ranker()),
        stored_scorer_of(index, bench.separate_ranker()),
    )
    assert stored is not None
    queries = bench.judged_queries(DL, bench.judged(DL, "dl19", 40))
    found = index.retrieve(queries, 1000)
    seconds: dict[str, list[float]] = {}
    for number in (0, *range(len(queries))):  # the first twice: it makes things ready
        for name, scorer, depth in (
            ("vectors 100", stored, 100),
            ("vectors 1000", stored, 1000),
            ("pairs 100", ranker, 100),
        ):
            own, began = found[number].top(depth), time.perf_counter()
            rerank_rankings([queries[number]], [own], index, scorer)
            seconds.setdefault(name, []).append(time.perf_counter() - began)
    figures: dict[str, Any] = {"queries": len(queries)}
    for name, spent in seconds.items():
        figures[name] = dict(zip(("p50 ms", "p95 ms"), percentiles(spent[1:]), strict=True))
    figures["pairs / vectors"] = figures["pairs 100"]["p50 ms"] / figures["vectors 100"]["p50 ms"]
    return figures


def served(bench: Bench) -> dict[str, Any]:
    """Queries a second of a server whose index has vectors, and of one whose index has none."""
    plain = bench.work / f"{DL}.plain.index"
    if not plain.exists():
        build_index(file_of(bench.data(DL), "corpus"), plain)
    with_vectors = bench.index(DL)
    write_choice(with_vectors, FirstStageChoice(by="bm25"))  # the same candidates in both
    qrels = bench.judged(DL, "dl19", 43)
    queries = bench.judged_queries(DL, qrels)
    figures: dict[str, Any] = {"clients": CLIENTS}
    for name, index, rounds in (("vectors", with_vectors, 20), ("pairs", plain, 1)):
        options: dict[str, Any] = {"index": index, "deadline": 120, "queue": 100_000}
        with server(bench.separate_ranker(), **options) as (url, _):
            asyncio.run(ask(url, queries[:2]))
            began = time.perf_counter()
            answers = asyncio.run(ask(url, queries * rounds))
            spent = time.perf_counter() - began
        assert all(one["by_vectors"] is (name == "vectors") for one in answers)
        assert not any(one["partial"] for one in answers)
        mean = evaluate(read_qrels(qrels), rankings(queries, answers), ["nDCG@10"]).means["nDCG@10"]
        figures[name] = {"queries/s": len(answers) / spent, "nDCG@10": mean}
        times = [one["second_look_ms"] / 1e3 for one in answers]
        figures[name]["second_look_ms p50, p95"] = percentiles(times)
    figures["ratio"] = figures["vectors"]["queries/s"] / figures["pairs"]["queries/s"]
    return figures


async def ask(url: str, queries: list[Query]) -> list[dict[str, Any]]:
    """The answers, of several clients at once, in the order of the queries."""
    answers: list[dict[str, Any]] = [{}] * len(queries)
    left = iter(enumerate(queries))
    async with httpx.AsyncClient(timeout=300) as client:

        async def work() -> None:
            for place, query in left:
                body = {"query": query.text, "k": 100, "depth": 100}
                answer = await client.post(f"{url}/v1/search", json=body)
                answers[place] = answer.raise_for_status().json()

        await asyncio.gather(*(work() for _ in range(CLIENTS)))
    return answers


def rankings(queries: list[Query], answers: list[dict[str, Any]]) -> list[Ranking]:
    """The first answer to each query as a ranking."""
    return [
        Ranking.of(query.id, [Hit(hit["id"], -hit["rank"]) for hit in answer["hits"]])
        for query, answer in zip(queries, answers, strict=False)
    ]


PARTS: dict[str, Part] = {
    **{
        f"same-order/{key}": partial(same_order, name=name, split=split, most=most)
        for key, (name, split, most) in SAME_ORDER.items()
    },
    "speed": speed,
    "states": states,
    "server": served,
    **{f"hybrid/{name}": partial(hybrid, name=name) for name in SETS},
    **{f"cluster/{name}": partial(on_cluster, name=name) for name in SETS},
    **{
        f"attention/{name}/{seed}": partial(attention, name=name, seed=seed)
        for name in ("scifact", "insuranceqa")
        for seed in (7, 8)
    },
    "million": million,
    "node-kill": node_kill,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="Name the parts.")
    parser.add_argument("work", type=Path, nargs="?")
    parser.add_argument("parts", nargs="*", help="Parts, or `all`.")
    parser.add_argument("--share", type=float, default=1.0, help="Of data and sizes: a trial.")
    parser.add_argument(
        "--queries", type=int, default=500, help="Judged queries of a set, at most."
    )
    parser.add_argument("--minutes", type=float, default=12.0, help="Of each call of `tune`.")
    parser.add_argument("--layers", type=int, default=3, help="Of the encoder of `million`.")
    parser.add_argument(
        "--cross", type=int, default=100, help="Queries that the cross-encoder reads candidates of."
    )
    parser.add_argument("--weights", type=Path, default=SHARED / "weights", help="Models to use.")
    parser.add_argument("--base", type=Path, help="The bi-encoder, if not e5-small of these.")
    given = parser.parse_args()
    if given.list or not given.work:
        print("\n".join(PARTS))
        return
    unknown = set(given.parts) - {"all", *PARTS}
    if unknown:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; --list names them")
    quiet()
    given.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        SHARED / "data",
        given.weights.resolve(),
        given.work.resolve(),
        given.share,
        given.queries,
        given.minutes,
        given.layers,
        (given.base or given.weights / "e5-small").resolve(),
        given.cross,
    )
    kept = given.work / "figures.jsonl"
    for name in PARTS if "all" in given.parts else given.parts:
        line = known(kept).get(name)
        if line is None:
            line = measured(name, PARTS[name], bench)
            with kept.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        print(line, flush=True)


def measured(name: str, part: Part, bench: Bench) -> str:
    """The figures of a part as one line, with the machine's and the load before it."""
    load, began = os.getloadavg()[0], time.monotonic()
    told = {"part": name, "share": bench.share, "base": bench.base.name} | part(bench)
    told |= {"seconds": time.monotonic() - began, "load before": load, "machine": machine()}
    return json.dumps(told, default=float)


def known(kept: Path) -> dict[str, str]:
    """The lines of parts that were measured before."""
    lines = kept.read_text("utf-8").splitlines() if kept.exists() else []
    return {json.loads(line)["part"]: line for line in lines}


if __name__ == "__main__":
    main()
