"""Both engines beside the bare library and the bare client, on generated passages.

    python benchmarks/first_look.py --documents 1000000 --work DIR

Each stage runs in a process of its own, so that its peak memory is its own. A cluster for the
OpenSearch stages is started from the tests' package (see tests/opensearch/install), or give --url.
The last line printed is JSON with every figure; a table stands above it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent / "tests")]

from secondlook.types import Query, Retriever  # noqa: E402
from zipf_corpus import texts  # noqa: E402

K = 1000
QUERIES = 400
BATCH = 16  # queries a bulk search carries, ours and the bare client's
BARE = "bench-bare"
Figures = dict[str, float]


def queries() -> list[Query]:
    """Three to eight words each, as frequent as in the passages."""
    rng = random.Random(7)
    return [
        Query(str(number), " ".join(text.split()[: rng.randint(3, 8)]))
        for number, text in enumerate(texts(QUERIES, 8, seed=99))
    ]


def passages(corpus: Path) -> Iterator[dict[str, str]]:
    with corpus.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def searched(**engines: Callable[[list[Query]], object]) -> Figures:
    """Queries per second in batches, and the 95th percentile of one query alone, of each engine.

    They take turns, so that what else the machine does falls on all of them alike.
    """
    wanted = queries()
    batches = [wanted[first : first + BATCH] for first in range(0, len(wanted), BATCH)]
    alone = [[query] for query in wanted[: QUERIES // 2]]
    took = {(name, kind): list[float]() for name in engines for kind in ("batch", "alone")}
    for search in engines.values():
        search(batches[0])  # warm
    for kind, asked in (("batch", batches), ("alone", alone)):
        for some in asked:
            for name, search in engines.items():
                start = time.perf_counter()
                search(some)
                took[name, kind].append(time.perf_counter() - start)
    figures = {}
    for name in engines:
        figures[f"{name}_queries_per_s"] = len(wanted) / sum(took[name, "batch"])
        figures[f"{name}_p95_ms"] = 1000 * statistics.quantiles(took[name, "alone"], n=20)[-1]
    return figures


def built(documents: int, build: Callable[[], object], folder: Path | None) -> Figures:
    start = time.perf_counter()
    build()
    took = time.perf_counter() - start
    figures = {"documents_per_s": documents / took, "build_s": took}
    if folder is not None:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        figures["index_mb"] = size / 1e6
    return figures


def bm25s_ours(corpus: Path, work: Path, documents: int, _url: str) -> Figures:
    from secondlook.data import read_corpus
    from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings

    folder = work / "bm25s-ours"
    shutil.rmtree(folder, ignore_errors=True)
    return built(
        documents,
        lambda: Bm25Index.build(folder, read_corpus(str(corpus)), Bm25Settings()),
        folder,
    )


def retrieving(engine: Retriever) -> Callable[[list[Query]], object]:
    return lambda wanted: engine.retrieve(wanted, K)


def bm25s_bare(corpus: Path, work: Path, documents: int, _url: str) -> Figures:
    import bm25s

    folder = work / "bm25s-bare"
    shutil.rmtree(folder, ignore_errors=True)

    def build() -> None:
        whole = [passage["text"] for passage in passages(corpus)]
        ids = [passage["_id"] for passage in passages(corpus)]
        matrix = bm25s.BM25(k1=0.9, b=0.4)
        matrix.index(tokens(whole), show_progress=False)
        kept = [{"id": i, "text": t} for i, t in zip(ids, whole, strict=True)]
        matrix.save(folder, corpus=kept, show_progress=False)

    return built(documents, build, folder)


def tokens(batch: list[str], **options: Any) -> Any:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("porter")
    return bm25s.tokenize(batch, stopwords="en", stemmer=stemmer, show_progress=False, **options)


def bm25s_search(corpus: Path, work: Path, _documents: int, _url: str) -> Figures:
    import bm25s

    from secondlook.retrieve.bm25 import Bm25Index

    matrix = bm25s.BM25.load(work / "bm25s-bare", mmap=True)
    names = [passage["_id"] for passage in passages(corpus)]

    def search(wanted: list[Query]) -> None:
        asked = tokens([query.text for query in wanted], return_ids=False)
        found = matrix.retrieve(asked, k=K, show_progress=False)
        for positions, scores in zip(found.documents, found.scores, strict=True):
            list(zip([names[p] for p in positions.tolist()], scores.tolist(), strict=True))

    return searched(ours=retrieving(Bm25Index.open(work / "bm25s-ours")), bare=search)


def opensearch_ours(corpus: Path, work: Path, documents: int, url: str) -> Figures:
    from secondlook.data import read_corpus
    from secondlook.retrieve.opensearch import OpenSearchIndex, OpenSearchSettings

    folder = work / "opensearch-ours"
    shutil.rmtree(folder, ignore_errors=True)
    settings = OpenSearchSettings(urls=(url,), name="bench-ours", shards=1, replicas=0)
    figures = built(
        documents,
        lambda: OpenSearchIndex.build(folder, read_corpus(str(corpus)), settings),
        None,
    )
    return figures | on_disk(url, "bench-ours*")


def on_disk(url: str, pattern: str) -> Figures:
    from opensearchpy import OpenSearch

    stats = OpenSearch([url]).indices.stats(index=pattern, metric="store")
    return {"index_mb": stats["_all"]["total"]["store"]["size_in_bytes"] / 1e6}


def opensearch_bare(corpus: Path, _work: Path, documents: int, url: str) -> Figures:
    from collections import deque

    from opensearchpy import OpenSearch, helpers

    client, name = OpenSearch([url], timeout=120, maxsize=8), BARE
    client.indices.delete(index=name, ignore_unavailable=True)
    client.indices.create(
        index=name,
        body={
            "settings": {
                "number_of_shards": 1,
                "number_of_replicas": 0,
                "refresh_interval": "-1",
                "similarity": {"default": {"type": "BM25", "k1": 0.9, "b": 0.4}},
            },
            "mappings": {
                "dynamic": "strict",
                "properties": {
                    "id": {"type": "keyword"},
                    "text": {"type": "text", "analyzer": "english"},
                },
            },
        },
    )

    def actions() -> Iterator[dict[str, Any]]:
        for passage in passages(corpus):
            source = {"id": passage["_id"], "text": passage["text"]}
            yield {"_index": name, "_id": passage["_id"], "_source": source}

    def build() -> None:
        loading = helpers.parallel_bulk(client, actions(), thread_count=4, chunk_size=500)
        deque(loading, maxlen=0)
        client.indices.refresh(index=name)

    return built(documents, build, None) | on_disk(url, name)


def opensearch_search(_corpus: Path, work: Path, _documents: int, url: str) -> Figures:
    from opensearchpy import OpenSearch

    from secondlook.retrieve.opensearch import OpenSearchIndex

    client = OpenSearch([url], timeout=120, maxsize=8)

    def search(wanted: list[Query]) -> None:
        lines: list[dict[str, Any]] = []
        for query in wanted:
            lines += [
                {"index": BARE},
                {
                    "query": {"match": {"text": query.text}},
                    "size": K,
                    "_source": False,
                    "stored_fields": "_none_",
                    "docvalue_fields": ["id"],
                },
            ]
        for answer in client.msearch(body=lines)["responses"]:
            [(hit["fields"]["id"][0], hit["_score"]) for hit in answer["hits"]["hits"]]

    ours = OpenSearchIndex.open(work / "opensearch-ours")
    return searched(ours=retrieving(ours), bare=search)


def store(corpus: Path, work: Path, documents: int, _url: str) -> Figures:
    from secondlook.data import read_corpus
    from secondlook.data.store import CorpusStore

    path = work / "store.sqlite"
    figures = built(documents, lambda: CorpusStore.build(path, read_corpus(str(corpus))), None)
    rng = random.Random(5)
    took = []
    with CorpusStore.open(path) as texts_by_id:
        for _ in range(101):
            wanted = [f"d{rng.randrange(documents)}" for _ in range(1000)]
            start = time.perf_counter()
            texts_by_id.fetch(wanted)
            took.append(1000 * (time.perf_counter() - start))
    return figures | {
        "index_mb": path.stat().st_size / 1e6,
        "fetch_1000_median_ms": statistics.median(took),
        "fetch_1000_p95_ms": statistics.quantiles(took, n=20)[-1],
    }


STAGES = {
    stage.__name__: stage
    for stage in (
        bm25s_ours,
        bm25s_bare,
        bm25s_search,
        opensearch_ours,
        opensearch_bare,
        opensearch_search,
        store,
    )
}


def run_stage(name: str, arguments: argparse.Namespace, corpus: Path, url: str) -> Figures:
    """The stage in a child process; its own peak memory is added to its figures."""
    command = [sys.executable, __file__, "--stage", name, "--url", url]
    command += ["--documents", str(arguments.documents), "--work", str(arguments.work)]
    print(f"… {name}", file=sys.stderr, flush=True)
    shown = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: Figures = json.loads(shown.splitlines()[-1])
    print(f"  {figures}", file=sys.stderr, flush=True)
    return figures


@contextmanager
def cluster(url: str | None) -> Iterator[str]:
    if url:
        yield url
        return
    from opensearch_cluster import Cluster

    with Cluster(nodes=1, heap="2g") as started:
        yield started.urls[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path, required=True, help="where corpus and indexes go")
    parser.add_argument("--url", help="a cluster that is already up")
    parser.add_argument("--only", action="append", choices=sorted(STAGES), help="these stages")
    parser.add_argument("--stage", choices=sorted(STAGES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    corpus = arguments.work / f"zipf-{arguments.documents}.jsonl"
    if arguments.stage:
        figures = STAGES[arguments.stage](
            corpus, arguments.work, arguments.documents, arguments.url or ""
        )
        figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(json.dumps(figures))
        return
    if not corpus.exists():
        make = [sys.executable, str(HERE / "zipf_corpus.py"), str(arguments.documents)]
        subprocess.run([*make, str(corpus)], check=True)
    results: dict[str, Figures] = {}
    wanted = arguments.only or list(STAGES)
    for name in (name for name in wanted if not name.startswith("opensearch")):
        results[name] = run_stage(name, arguments, corpus, "")
    if any(name.startswith("opensearch") for name in wanted):
        with cluster(arguments.url) as url:
            for name in (name for name in wanted if name.startswith("opensearch")):
                results[name] = run_stage(name, arguments, corpus, url)
    report(results)


def report(results: dict[str, Figures]) -> None:
    columns = sorted({column for figures in results.values() for column in figures})
    print("| stage | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name, figures in results.items():
        cells = [f"{figures[c]:,.1f}" if c in figures else "" for c in columns]
        print(f"| {name} | " + " | ".join(cells) + " |")
    ratios = {}
    for engine in ("bm25s", "opensearch"):
        made = [results.get(f"{engine}_{which}", {}) for which in ("ours", "bare")]
        if all(made):
            ours, bare = (figures["documents_per_s"] for figures in made)
            ratios[f"{engine}_documents_per_s_vs_bare"] = ours / bare
        if found := results.get(f"{engine}_search"):
            ratio = found["ours_queries_per_s"] / found["bare_queries_per_s"]
            ratios[f"{engine}_queries_per_s_vs_bare"] = ratio
    print(json.dumps({"stages": results, "ratios": ratios}))


if __name__ == "__main__":
    main()
