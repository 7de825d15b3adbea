"""A shop's index that secondlook did not make: attached, searched, tuned on, served, and shaken.

    python benchmarks/attach.py --data ../shared/data --work DIR PART …

Parts: templates, depth, cost, kill, scifact, tune, serve (default: all, in this order). A secured
cluster of three nodes is started from the tests' package (tests/opensearch/install-full); with
--elasticsearch, one secured Elasticsearch node instead. InsuranceQA's answers are its products,
with fields added. Every part prints a line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import ssl
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent / "tests")]

import secondlook as sl  # noqa: E402
from foreign_index import MAPPING, STORED, TEMPLATES, load, writes  # noqa: E402
from opensearch_cluster import ELASTICSEARCH, FULL_OPENSEARCH, Cluster  # noqa: E402
from opensearch_security import ADMIN, SHOPPER, ElasticSecurity, Security  # noqa: E402
from secondlook.data import read_qrels, read_queries, read_run  # noqa: E402
from secondlook.retrieve import open_index  # noqa: E402
from secondlook.types import Query  # noqa: E402
from secondlook.workflows.retrieve import rankings_of, retrieve  # noqa: E402

ALIAS, INDEX = "products", "products-1"
TEXT, TITLE = "{{description}}", "{{name}}"
BRANDS = ("acme", "globex", "initech", "umbrella")
COST_QUERIES, COST_HITS, COST_ROUNDS = 512, 100, 5
THREADS = 8  # requests at a time, ours and the bare client's


def said(part: str, **figures: Any) -> None:
    print(json.dumps({"part": part, **figures}), flush=True)


def answers(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Products: an answer is the description, its first words the name."""
    rng = random.Random(3)
    with gzip.open(data / "insuranceqa/corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            words = row["text"].split()
            yield (
                row["_id"],
                {
                    "name": row.get("title") or " ".join(words[:6]),
                    "description": row["text"],
                    "brand": rng.choice(BRANDS),
                    "tags": rng.sample(("life", "auto", "home", "health"), 2),
                    "attributes": [{"name": "length", "value": f"{len(words)} words"}],
                    "price": rng.randrange(1, 500),
                    "released": f"2023-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
                    "sku": f"SKU-{row['_id']}",
                },
            )


def judged(data: Path, count: int | None = None) -> list[Query]:
    found = list(read_queries(data / "insuranceqa/queries.jsonl.gz"))
    return found if count is None else found[:count]


def attached(cluster: Cluster, work: Path, name: str, **given: Any) -> Path:
    """The index folder, attached by the user who may only read it."""
    folder = work / name
    given = {"text": TEXT, "title": TITLE, "query": TEMPLATES["boosts"], **given}
    sl.attach_index(folder, url=cluster.urls, index=ALIAS, replace=True, **given)
    return folder


def templates(cluster: Cluster, data: Path, work: Path) -> None:
    """First-stage scores and order beside the same bodies sent raw."""
    queries = judged(data, 100)
    for shape in (*TEMPLATES, "stored"):
        body = STORED["script"]["source"] if shape == "stored" else TEMPLATES[shape]
        given = {"query": None, "template": "shop-search"} if shape == "stored" else {"query": body}
        environment = ADMIN if shape == "stored" else SHOPPER  # what stored templates take
        with signed_in(environment):
            index = open_index(attached(cluster, work, f"shape-{shape}", **given))
            rankings = index.retrieve(queries, 50)
        same_scores = same_order = 0
        for ranking, query in zip(rankings, queries, strict=True):
            raw = json.loads(json.dumps(body).replace("{{query}}", json.dumps(query.text)[1:-1]))
            raw["size"] = 50
            hits = cluster.send(0, "POST", f"/{ALIAS}/_search", raw)["hits"]["hits"]
            ordered = sorted(((h["_score"], h["_id"]) for h in hits), reverse=True)
            own = [(hit.score, hit.doc_id) for hit in ranking.hits]
            same_scores += [score for score, _ in own] == [score for score, _ in ordered]
            last = ordered[-1][0] if ordered else 0
            same_order += [o for o in own if o[0] > last] == [o for o in ordered if o[0] > last]
        said(
            "templates",
            shape=shape,
            queries=len(queries),
            same_scores=same_scores,
            same_order_above_last_ties=same_order,
        )


def depth(cluster: Cluster, data: Path, work: Path) -> None:
    """All documents of a query that matches most of them, and the whole corpus."""
    index = open_index(attached(cluster, work, "deep"))
    total = cluster.get(0, f"/{INDEX}/_count")["count"]
    began = time.monotonic()
    (ranking,) = index.retrieve([Query("q", "insurance the of and policy life you")], total)
    seconds = time.monotonic() - began
    body = {
        "query": {
            "multi_match": {
                "query": "insurance the of and policy life you",
                "fields": ["name^3", "description"],
            }
        }
    }
    matching = cluster.send(0, "POST", f"/{ALIAS}/_count", body)["count"]
    began = time.monotonic()
    ids = {document.id for document in index.documents()}
    streamed = time.monotonic() - began
    said(
        "depth",
        documents=total,
        matching=matching,
        hits=len(ranking.hits),
        seconds=round(seconds, 2),
        streamed=len(ids),
        stream_seconds=round(streamed, 2),
    )


def cost(cluster: Cluster, data: Path, work: Path) -> None:
    """Queries per second through `attach` and through a bare client with the same bodies."""
    from opensearchpy import OpenSearch

    index = open_index(attached(cluster, work, "cost"))
    queries = judged(data, COST_QUERIES)
    client = OpenSearch(
        list(cluster.urls),
        http_auth=(SHOPPER.name, SHOPPER.password),
        ca_certs=os.environ["OPENSEARCH_CA_CERTS"],
        pool_maxsize=16,
    )

    def bare(query: Query) -> list[tuple[str, float]]:
        text = json.dumps(TEMPLATES["boosts"]).replace("{{query}}", json.dumps(query.text)[1:-1])
        body = {**json.loads(text), "size": COST_HITS, "_source": False, "track_total_hits": False}
        hits = client.search(index=ALIAS, body=body)["hits"]["hits"]
        return [(hit["_id"], hit["_score"]) for hit in hits]

    def through_client() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(bare, queries))

    def through_attach() -> None:
        list(rankings_of(index, queries, COST_HITS))

    ways = {"bare": through_client, "attach": through_attach}
    for way in ways.values():
        way()  # caches of the cluster and connections are ready after this
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(COST_ROUNDS):
        for name, way in ways.items():
            began = time.monotonic()
            way()
            rates[name].append(len(queries) / (time.monotonic() - began))
    ratios = [ours / theirs for ours, theirs in zip(rates["attach"], rates["bare"], strict=True)]
    said(
        "cost",
        queries=len(queries),
        hits=COST_HITS,
        rounds=COST_ROUNDS,
        **{
            f"{name}_queries_per_second": round(statistics.median(of), 1)
            for name, of in rates.items()
        },
        ratios=[round(ratio, 3) for ratio in ratios],
        ratio=round(statistics.median(ratios), 3),
    )


def kill(cluster: Cluster, data: Path, work: Path) -> None:
    """A node dies while 10,000 queries are retrieved; the run must be the one without its death."""
    folder = attached(cluster, work, "kill")
    queries = work / "queries.jsonl"
    wanted = judged(data, 10_000)
    rows = [json.dumps({"_id": query.id, "text": query.text}) for query in wanted]
    queries.write_text("\n".join(rows) + "\n")
    began = time.monotonic()
    retrieve(folder, queries, work / "whole.trec.gz", k=20)
    quiet = time.monotonic() - began
    victim = 1
    timer = threading.Timer(quiet / 3, cluster.kill, [victim])
    timer.start()
    began = time.monotonic()
    retrieve(folder, queries, work / "shaken.trec.gz", k=20)
    shaken = time.monotonic() - began
    timer.join()
    both = [list(read_run(work / name)) for name in ("whole.trec.gz", "shaken.trec.gz")]
    same = sum(
        [hit.score for hit in one.hits] == [hit.score for hit in other.hits]
        for one, other in zip(*both, strict=True)
    )
    cluster.restart(victim)
    said(
        "kill",
        queries=len(wanted),
        killed_after=round(quiet / 3, 1),
        seconds=round(quiet, 1),
        seconds_with_kill=round(shaken, 1),
        same_scores=same,
    )


def scifact(cluster: Cluster, data: Path, work: Path) -> None:
    """nDCG@10 of SciFact: our own index, and one made by plain HTTP with the same analyzer."""
    from secondlook.evaluate.measures import evaluate

    folder = data / "scifact"
    mapping = {
        "properties": {
            "title": {"type": "text", "index": False},
            "text": {"type": "text", "index": False},
            "all": {"type": "text", "analyzer": "english", "similarity": "ours"},
        }
    }
    similarity = {"ours": {"type": "BM25", "k1": 0.9, "b": 0.4}}

    def documents() -> Iterator[tuple[str, dict[str, Any]]]:
        with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                whole = f"{row['title']} {row['text']}"
                yield row["_id"], {"title": row["title"], "text": row["text"], "all": whole}

    load(
        cluster, "products-scifact", documents(), alias=None, mapping=mapping, similarity=similarity
    )
    body = {"query": {"match": {"all": "{{query}}"}}}
    foreign = work / "scifact-attached"
    sl.attach_index(
        foreign,
        url=cluster.urls,
        index="products-scifact",
        query=body,
        text="{{text}}",
        title="{{title}}",
        replace=True,
    )
    with signed_in(ADMIN):
        own = sl.build_index(
            folder / "corpus.jsonl.gz",
            work / "scifact-own",
            engine="opensearch",
            url=list(cluster.urls),
            name="animals-scifact",
            replace=True,
        )
        found = {"own": own.engine}
        qrels = read_qrels(folder / "qrels/test.tsv")
        queries = [query for query in read_queries(folder / "queries.jsonl") if query.id in qrels]
        figures = {"own": evaluate(qrels, found["own"].retrieve(queries, 100), ["nDCG@10"]).means}
    figures["attached"] = evaluate(
        qrels, open_index(foreign).retrieve(queries, 100), ["nDCG@10"]
    ).means
    said("scifact", queries=len(queries), **{n: round(m["nDCG@10"], 4) for n, m in figures.items()})


def tune(cluster: Cluster, data: Path, work: Path, base: str, minutes: float) -> None:
    """`secondlook tune` on the attached index, to a verdict."""
    folder = work / "judged"
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    source = data / "insuranceqa"
    if not (folder / "queries.jsonl.gz").exists():
        (folder / "queries.jsonl.gz").symlink_to(source / "queries.jsonl.gz")
        for path in (source / "qrels").iterdir():
            (folder / "qrels" / path.name).symlink_to(path)
    index = attached(cluster, work, "tune.index", query=TEMPLATES["bool"])
    before = writes(cluster, INDEX)
    began = time.monotonic()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "secondlook",
            "tune",
            folder,
            "-o",
            work / "tuned",
            "--index",
            index,
            "--base",
            base,
            "--minutes",
            str(minutes),
            "--depth",
            "50",
            "--ship",
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    (work / "tune.log").write_text(done.stdout + done.stderr)
    verdict = json.loads((work / "tuned/verdict.json").read_text())
    said(
        "tune",
        seconds=round(time.monotonic() - began),
        exit_code=done.returncode,
        output=done.stdout.splitlines()[-12:],
        verdict=verdict.get("runs", verdict),
        writes=writes(cluster, INDEX) - before,
    )


def serve(cluster: Cluster, data: Path, work: Path, ranker: str) -> None:
    """The server with a filter passed through, and its page in a browser."""
    from playwright.sync_api import sync_playwright

    from serve_command import free_port, served

    index = attached(cluster, work, "tune.index", query=TEMPLATES["bool"])
    before = writes(cluster, INDEX)
    port = str(free_port())
    command = [
        sys.executable,
        "-m",
        "secondlook",
        "serve",
        ranker,
        "--index",
        str(index),
        "--port",
        port,
    ]
    question = "how much life insurance do I need"
    with served(command, work, port):
        hits = [_ask(port, question, brand)["hits"] for brand in ("acme", "globex")]
        brands = [{_brand(cluster, hit["id"]) for hit in found} for found in hits]
        with sync_playwright() as play:
            browser = play.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"http://127.0.0.1:{port}/")
            page.fill("#query", question)
            page.fill("#filters", '{"term": {"brand": "acme"}}')
            page.click("#ask button")
            page.wait_for_selector("#looks li", timeout=60_000)
            page.screenshot(path=work / "search-page.png")
            browser.close()
    log = (work / "serve.log").read_text()
    said(
        "serve",
        hits=[len(found) for found in hits],
        brands=[sorted(found) for found in brands],
        writes=writes(cluster, INDEX) - before,
        secret_in_log=SHOPPER.password in log,
        screenshot=str(work / "search-page.png"),
    )


def _ask(port: str, query: str, brand: str) -> Any:
    body = {"query": query, "k": 10, "depth": 30, "filters": [{"term": {"brand": brand}}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/search",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _brand(cluster: Cluster, doc_id: str) -> str:
    return str(cluster.get(0, f"/{INDEX}/_doc/{doc_id}")["_source"]["brand"])


@contextmanager
def signed_in(user: Any) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(user.environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def refuses_writes(cluster: Cluster) -> None:
    """What happens where the user tries to write, by force."""
    secret = b64encode(f"{SHOPPER.name}:{SHOPPER.password}".encode()).decode()
    request = urllib.request.Request(
        f"{cluster.urls[0]}/{ALIAS}/_doc/new",
        b'{"name": "new"}',
        {"authorization": f"Basic {secret}", "content-type": "application/json"},
        method="PUT",
    )
    context = ssl.create_default_context(cafile=os.environ["OPENSEARCH_CA_CERTS"])
    try:
        urllib.request.urlopen(request, timeout=10, context=context).close()
    except urllib.error.HTTPError as refusal:
        said("write attempt", status=refusal.code)


PARTS = {"templates": templates, "depth": depth, "cost": cost, "kill": kill, "scifact": scifact}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("parts", nargs="*", default=[*PARTS, "tune", "serve"])
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--base", default="intfloat/e5-small")
    arguments.add_argument("--minutes", type=float, default=8)
    arguments.add_argument("--ranker", help="to serve; default: what `tune` made")
    arguments.add_argument("--elasticsearch", action="store_true")
    arguments.add_argument("--nodes", type=int, default=3)
    arguments.add_argument("--documents", type=int, help="only so many; default: all 27,413")
    asked = arguments.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CONFIG_HOME"] = str(asked.work / "config")
    kind = ElasticSecurity if asked.elasticsearch else Security
    security = kind(asked.work / f"authority-{int(time.time())}")
    engine = (
        ELASTICSEARCH
        if asked.elasticsearch
        else FULL_OPENSEARCH.with_plugins("opensearch-security")
    )
    nodes = 1 if asked.elasticsearch else asked.nodes
    os.environ["OPENSEARCH_CA_CERTS"] = str(security.authority.certificate)
    os.environ.update(SHOPPER.environment)
    with Cluster(nodes, distribution=engine, security=security) as cluster:
        load(
            cluster,
            INDEX,
            islice(answers(asked.data), asked.documents),
            mapping=MAPPING,
            shards=3,
            replicas=min(1, nodes - 1),
        )
        cluster.wait(nodes, "green")
        cluster.send(0, "PUT", "/_scripts/shop-search", STORED)
        before = writes(cluster, INDEX)
        said("index", documents=cluster.get(0, f"/{INDEX}/_count")["count"], writes=before)
        for part in asked.parts:
            if part == "tune":
                tune(cluster, asked.data, asked.work, asked.base, asked.minutes)
            elif part == "serve":
                ranker = asked.ranker or str(asked.work / "tuned/ranker")
                serve(cluster, asked.data, asked.work, ranker)
            else:
                PARTS[part](cluster, asked.data, asked.work)
        refuses_writes(cluster)
        said("writes by us", before=before, after=writes(cluster, INDEX))


if __name__ == "__main__":
    main()
