"""A shop's index as its owner makes it: by plain HTTP, with nothing of ours."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opensearch_cluster import Cluster

ALIAS = "products"
MAPPING = {
    "properties": {
        "name": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "description": {"type": "text", "analyzer": "english"},
        "brand": {"type": "keyword"},
        "tags": {"type": "keyword"},
        "attributes": {
            "type": "nested",
            "properties": {"name": {"type": "keyword"}, "value": {"type": "text"}},
        },
        "price": {"type": "float"},
        "released": {"type": "date"},
        "sku": {"type": "keyword"},
    }
}
BRANDS = ("acme", "globex", "initech", "umbrella")
THINGS = ("kettle", "lamp", "boot", "tent", "radio", "saw", "clock", "chair")
ADJECTIVES = ("red", "light", "sturdy", "quiet", "folding", "heavy", "small", "warm")

TEMPLATES: dict[str, dict[str, Any]] = {
    "boosts": {
        "query": {"multi_match": {"query": "{{query}}", "fields": ["name^3", "description"]}}
    },
    "bool": {
        "query": {
            "bool": {
                "must": {"match": {"description": "{{query}}"}},
                "should": [{"match": {"name": {"query": "{{query}}", "boost": 2}}}],
                "filter": [{"range": {"price": {"gte": 5}}}],
            }
        }
    },
    "decay": {
        "query": {
            "function_score": {
                "query": {"multi_match": {"query": "{{query}}", "fields": ["name", "description"]}},
                "exp": {"released": {"origin": "2024-01-01", "scale": "90d", "decay": 0.5}},
                "boost_mode": "multiply",
            }
        }
    },
}
"""Three shapes of a shop's query; the fourth is stored on the cluster."""
STORED = {
    "script": {
        "lang": "mustache",
        "source": {
            "query": {"multi_match": {"query": "{{query}}", "fields": ["name^2", "description"]}},
            "size": "{{size}}{{^size}}10{{/size}}",
        },
    }
}


def products(number: int, seed: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ids and documents; some lack a description, brand or attributes."""
    rng = random.Random(seed)
    for position in range(number):
        thing, adjective = rng.choice(THINGS), rng.choice(ADJECTIVES)
        words = " ".join(rng.choices((*THINGS, *ADJECTIVES), k=rng.randrange(4, 12)))
        document: dict[str, Any] = {
            "name": f"{adjective} {thing} {position}",
            "description": f"A {adjective} {thing}. It goes with {words}.",
            "brand": rng.choice(BRANDS),
            "tags": rng.sample(ADJECTIVES, 2),
            "attributes": [
                {"name": "colour", "value": rng.choice(("red", "blue"))},
                {"name": "size", "value": f"{rng.randrange(10, 40)} cm"},
            ],
            "price": rng.randrange(1, 100),
            "released": f"2023-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
            "sku": f"SKU-{position}",
        }
        if position % 10 == 3:
            del document["description"]
        if position % 10 == 7:
            del document["attributes"]
        yield f"p{position}", document


def load(
    cluster: Cluster,
    index: str,
    documents: Iterable[tuple[str, dict[str, Any]]],
    *,
    alias: str | None = ALIAS,
    mapping: dict[str, Any] = MAPPING,
    shards: int = 1,
    replicas: int = 0,
    **settings: Any,
) -> None:
    """Make an index, fill it, and put the alias on it (alone)."""
    about = {"number_of_shards": shards, "number_of_replicas": replicas, **settings}
    cluster.send(0, "PUT", f"/{index}", {"settings": about, "mappings": mapping})
    lines: list[str] = []

    def flush() -> None:
        if lines:
            answer = cluster.send(0, "POST", f"/{index}/_bulk", "\n".join(lines) + "\n", 120)
            assert not answer["errors"], str(answer)[:500]
            lines.clear()

    for doc_id, document in documents:
        lines += [json.dumps({"index": {"_id": doc_id}}), json.dumps(document)]
        if len(lines) >= 4000:
            flush()
    flush()
    cluster.send(0, "POST", f"/{index}/_refresh")
    if alias:
        move(cluster, index, alias)


def move(cluster: Cluster, index: str, alias: str = ALIAS) -> None:
    """The alias stands for this index from now on."""
    others = cluster.get(0, f"/_cat/aliases/{alias}?format=json")
    actions = [{"remove": {"index": other["index"], "alias": alias}} for other in others]
    actions.append({"add": {"index": index, "alias": alias}})
    cluster.send(0, "POST", "/_aliases", {"actions": actions})


def writes(cluster: Cluster, index: str) -> int:
    """How many writes the index has ever had: its shards number them, whatever node holds them."""
    indices = cluster.get(0, f"/{index}/_stats?level=shards")["indices"]
    return sum(
        copy["seq_no"]["max_seq_no"] + 1
        for one in indices.values()
        for copies in one["shards"].values()
        for copy in copies
        if copy["routing"]["primary"]
    )
