"""A million passages with vectors, and a cluster that loses a node; parts of vectors.py.

The passages are pieces of a dozen words, cut from all corpora in the shared data. The encoder is
e5-small's lowest layers: its vectors have all dimensions, and a million of them take minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent / "tests")]

import numpy as np  # noqa: E402

from secondlook.data import read_corpus  # noqa: E402
from secondlook.retrieve import vector_files  # noqa: E402
from secondlook.retrieve.cluster import VectorField  # noqa: E402
from secondlook.retrieve.hybrid import HybridIndex  # noqa: E402
from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings  # noqa: E402
from secondlook.retrieve.vector_files import (  # noqa: E402
    FOLDER,
    VECTOR_CARD,
    VectorCard,
    VectorFiles,
    read_vector_card,
)
from secondlook.types import Document  # noqa: E402
from secondlook.workflows.index import build_index  # noqa: E402
from secondlook.workflows.open_index import open_index  # noqa: E402
from vectors_bench import Bench, file_of, percentiles  # noqa: E402

PASSAGES, WORDS, KILLS = 1_000_000, 12, 2
VECTORS, DIMENSION = 50_000, 384
SEARCHED = 200
DEPTHS = (10, 100, 1000)
PRECISION = "int8"


def million(bench: Bench) -> dict[str, Any]:
    """Two builds, one of them killed twice: memory, bytes; then recall against exact search."""
    passages = bench.of_share(PASSAGES, 2_000)
    corpus, base = bench.work / f"pieces.{passages}.jsonl", shallow(bench)
    if not corpus.exists():
        write_pieces(bench, corpus, passages)
    figures: dict[str, Any] = {"passages": passages, "precision": PRECISION}
    figures["encoder"] = f"{bench.base.name}, lowest {bench.layers} layers"
    for name, kills in (("killed", KILLS), ("straight", 0)):
        figures[name] = built(bench, bench.work / f"million.{name}", corpus, base, kills)
    same = figures["killed"].pop("digests") == figures["straight"].pop("digests")
    figures["same bytes"] = same
    return figures | searched(bench, bench.work / "million.straight" / "index")


def shallow(bench: Bench) -> Path:
    """The bi-encoder's lowest layers, as a folder of their own."""
    folder = bench.work / f"{bench.base.name}.{bench.layers}"
    if not folder.exists():
        half = folder.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(bench.base, half)
        config = json.loads((half / "config.json").read_text("utf-8"))
        config["num_hidden_layers"] = bench.layers
        (half / "config.json").write_text(json.dumps(config), "utf-8")
        half.rename(folder)
    return folder


def write_pieces(bench: Bench, path: Path, passages: int) -> None:
    """So many pieces of real text, each once."""
    half, seen = path.with_suffix(".half"), set[bytes]()
    with half.open("w", encoding="utf-8") as file:
        for text in pieces(bench):
            digest = sha256(text.encode()).digest()[:8]
            if digest not in seen:
                seen.add(digest)
                file.write(json.dumps({"_id": str(len(seen)), "text": text}) + "\n")
                if len(seen) == passages:
                    break
        else:
            sys.exit(f"the shared corpora give only {len(seen):,} passages")
    half.rename(path)


def pieces(bench: Bench) -> Iterator[str]:
    """All corpora in pieces; then in pieces that begin elsewhere."""
    corpora = sorted(bench.sets.glob("*/corpus.jsonl*"))
    for offset in (0, WORDS // 2, WORDS // 3):
        for path in corpora:
            for document in read_corpus(path):
                words = document.text.split()[offset:]
                for start in range(0, len(words) - WORDS // 2, WORDS):
                    yield " ".join(words[start : start + WORDS])


def built(bench: Bench, folder: Path, corpus: Path, base: Path, kills: int) -> dict[str, Any]:
    """Builds until it is there, killed so often on the way; each process is noted as it ends."""
    folder.mkdir(exist_ok=True)
    index, notes = folder / "index", folder / "processes.jsonl"
    while not (index / FOLDER / VECTOR_CARD).exists():
        done = [json.loads(line) for line in read_lines(notes)]
        killed = sum(one["killed"] for one in done)
        threshold = (killed + 1) * read_count(corpus) // (kills + 1) if killed < kills else None
        note = run_once(bench, index, corpus, base, threshold)
        with notes.open("a") as file:
            file.write(json.dumps(note) + "\n")
    done = [json.loads(line) for line in read_lines(notes)]
    files = [path for path in sorted((index / FOLDER).iterdir()) if path.is_file()]
    return {
        "kills": sum(one["killed"] for one in done),
        "seconds": sum(one["seconds"] for one in done),
        "seconds after encoding": done[-1].get("seconds after encoding"),
        "peak MB": max(one["peak KB"] for one in done) / 1024,
        "peak MB without mapped files": max(one["peak anonymous KB"] for one in done) / 1024,
        "vectors MB": sum(path.stat().st_size for path in files) / 2**20,
        "digests": {path.name: digest(path) for path in files},
    }


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, sha256).hexdigest()


def read_lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []


def read_count(corpus: Path) -> int:
    return int(corpus.stem.rpartition(".")[2])


def run_once(
    bench: Bench, index: Path, corpus: Path, base: Path, threshold: int | None
) -> dict[str, Any]:
    """One process that builds; killed as soon as so many documents are safe."""
    command = [sys.executable, __file__, str(base), str(corpus), str(index), str(bench.share)]
    process, began = subprocess.Popen(command, stdout=sys.stderr), time.monotonic()
    state = index / f".{FOLDER}.half" / "progress.json"
    peak = anonymous = 0
    killed, passages, encoded_at = False, read_count(corpus), None
    while process.poll() is None:
        now = memory(process.pid)
        peak, anonymous = max(peak, now.get("VmHWM", 0)), max(anonymous, now.get("RssAnon", 0))
        safe = encoded(state)
        if threshold is not None and not killed and safe >= threshold:
            os.kill(process.pid, signal.SIGKILL)
            killed = True
        if safe == passages and encoded_at is None:
            encoded_at = time.monotonic()
        time.sleep(0.05)
    if not killed and process.returncode:
        sys.exit(f"the build ended with {process.returncode}")
    told = {"killed": killed, "seconds": time.monotonic() - began}
    if encoded_at is not None:  # graphs are built then
        told["seconds after encoding"] = time.monotonic() - encoded_at
    return told | {"peak KB": peak, "peak anonymous KB": anonymous}


def encoded(state: Path) -> int:
    """How many documents a kill would not cost."""
    try:
        return int(json.loads(state.read_text("utf-8"))["documents"])
    except (OSError, ValueError, KeyError):
        return 0


def memory(process: int) -> dict[str, int]:
    """Kilobytes by the kernel's names."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    return {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}


def build() -> None:
    """The process that is killed."""
    base, corpus, index, share = sys.argv[1:]
    if float(share) < 1:  # a trial is over before the first save
        vector_files._SECONDS_BETWEEN_SAVES = 0.0
    given: dict[str, Any] = {"vectors": base, "vector_precision": PRECISION}
    build_index(corpus, index, **given)


def searched(bench: Bench, folder: Path) -> dict[str, Any]:
    """The nearest against those of every row compared, and the time of a search."""
    from secondlook.data import read_queries

    index = open_index(folder, by="vectors").engine
    assert isinstance(index, HybridIndex)
    stored, card = VectorFiles(folder / FOLDER), read_vector_card(folder / FOLDER)
    queries = list(read_queries(file_of(bench.data("squad-passage"), "queries")))[:SEARCHED]
    vectors = index.encoder.query_vectors(queries)
    exact = [nearest(stored, vector, card.rows, max(DEPTHS)) for vector in vectors]
    figures: dict[str, Any] = {"graphs": card.graphs}
    for depth in DEPTHS:
        index.retrieve(queries[:1], depth)  # makes things ready
        shared, whole, near = [], [], []
        for query, vector, best in zip(queries, vectors, exact, strict=True):
            began = time.perf_counter()
            index.retrieve([query], depth)
            between = time.perf_counter()
            (found,) = index.vectors.retrieve([query], vector[None], depth)
            near.append(time.perf_counter() - between)
            whole.append(between - began)
            wanted = set(stored.ids.at(best[:depth]))
            shared.append(len(wanted & {hit.doc_id for hit in found.hits}) / len(wanted))
        figures[f"nearest {depth}"] = {
            "recall": np.mean(shared),
            "p50, p95 ms, with the query's encoding": percentiles(whole),
            "p50, p95 ms, of the vector": percentiles(near),
        }
    return figures


def nearest(stored: VectorFiles, vector: np.ndarray, rows: int, count: int) -> np.ndarray:
    """The positions of the nearest, by comparing all."""
    parts = [slice(start, min(start + 65_536, rows)) for start in range(0, rows, 65_536)]
    scores = np.concatenate([stored.rows.similarities(one, vector[None])[:, 0] for one in parts])
    return np.argsort(-scores, kind="stable")[:count]


def node_kill(bench: Bench) -> dict[str, Any]:
    """Documents with vectors are loaded on three nodes; one is killed in the middle of it."""
    from vectors_hybrid import cluster

    total, acknowledged, killed = bench.of_share(VECTORS, 600), list[str](), threading.Event()
    nodes = cluster()

    def count(doc_ids: Any) -> None:
        acknowledged.extend(doc_ids)
        if len(acknowledged) > total // 3 and not killed.is_set():
            killed.set()
            threading.Thread(target=nodes.kill, args=(2,)).start()

    made_by = "sha256:drawn at random"
    settings = OpenSearchSettings(
        urls=nodes.urls,
        name="killed",
        shards=3,
        replicas=1,
        vectors=VectorField(dimension=DIMENSION, made_by=made_by),
    )
    rows = RandomRows(total)
    folder = bench.work / "killed.cluster"
    shutil.rmtree(folder, ignore_errors=True)
    documents = [Document(f"d{n}", f"passage {n} of the okapi") for n in range(total)]
    index = OpenSearchIndex.build(
        folder,
        documents,
        settings,
        vectors=rows,
        on_acknowledged=count,  # type: ignore[arg-type]
    )
    told = {"loaded": total, "acknowledged": len(set(acknowledged)), "node killed": killed.is_set()}
    held = {
        doc.id
        for start in range(0, total, 500)
        for doc in index.fetch(acknowledged[start : start + 500])
    }
    card = VectorCard(
        ranker="drawn",
        source="drawn",
        fingerprint=made_by,
        dimension=DIMENSION,
        documents=total,
        rows=total,
        corpus="drawn",
        stored="cluster",
    )
    vectors, right = index.vector_search(card), 0
    for start in range(0, total, 500):  # each document's vector against a direction
        places = np.arange(start, min(start + 500, total))
        direction = rows.rows[start : start + 1]
        (found,) = vectors.similarities(direction, [[f"d{place}" for place in places]])
        right += int(np.isclose(found.rows, rows.rows[places] @ direction[0], atol=1e-4).sum())
    told |= {"documents lost": total - len(held), "vectors that are not as sent": total - right}
    nodes.restart(2)
    return told


class RandomRows:
    """Unit vectors, by position."""

    def __init__(self, count: int) -> None:
        rows = np.random.default_rng(0).normal(size=(count, DIMENSION)).astype(np.float32)
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def read(self, chosen: Any) -> np.ndarray:
        """Some of them."""
        return self.rows[chosen]


if __name__ == "__main__":
    build()
