"""A load: one physical index on its way from empty to serving.

Searches ask for an alias. A load fills an index of its own, behind a second alias that ends in
`-loading`, and the switch of the first alias is one atomic step: a half index is never served.

The index's mapping remembers how far the load has come: so many documents, and the fingerprint of
exactly these. A load that was killed goes on behind them if the corpus begins with the same
documents, and starts over if not. Each document remembers its position in the corpus: what was
sent beyond the remembered point is removed before going on, and an id that comes twice shows as a
create that meets another position. So the index ends with exactly the corpus.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from secondlook.analyze import ANALYZERS
from secondlook.errors import EngineProblem, IndexProblem, MalformedInput
from secondlook.retrieve.bulk import QUERIES, SHOWN, cut, in_parallel, send
from secondlook.retrieve.cluster_vectors import (
    VECTOR,
    product_of,
    vector_field,
    vector_settings,
)
from secondlook.retrieve.lucene import CONTENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from secondlook.data.fingerprint import Fingerprint
    from secondlook.retrieve.bulk import Chunk, Write
    from secondlook.retrieve.cluster import Cluster, OpenSearchSettings, VectorField
    from secondlook.retrieve.cluster_vectors import Product
    from secondlook.retrieve.vector_files import StoredRows
    from secondlook.types import Document

_LAYOUT = 2
"""Goes up when the mapping changes, so that a load is not resumed into an older one's."""
_PLACING = "90s"  # a cluster waits 60 s for a lost node before it copies its shards elsewhere
_LONG = 3600.0  # seconds for a request that takes as long as its data


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """What an index on the cluster says of itself, in its mapping."""

    made_as: dict[str, Any]
    documents: int
    fingerprint: str
    layout: int = _LAYOUT

    @classmethod
    def read(cls, index: Mapping[str, Any]) -> IndexMetadata | None:
        """None for an index that secondlook did not make."""
        said = index.get("mappings", {}).get("_meta", {}).get("secondlook")
        if said is None:
            return None
        return cls(said["made_as"], said["documents"], said["fingerprint"], said["layout"])

    def write(self, cluster: Cluster, index: str) -> None:
        """Into the mapping, in place of what it said before."""
        cluster.ask("PUT", f"/{index}/_mapping", {"_meta": {"secondlook": asdict(self)}})


def check(cluster: Cluster, settings: OpenSearchSettings, dimension: int) -> None:
    """Raise EngineProblem where no load with vectors of so many dimensions could begin."""
    _refuse_too_few_nodes(cluster, settings)
    _ours(cluster, settings.name)
    _on_cluster(settings.analyzer)
    _checked_vector_field(cluster, dimension)


class Load:
    """Begin it, fill it, finish it."""

    def __init__(self, cluster: Cluster, name: str, index: str, imprint: IndexMetadata) -> None:
        self._cluster = cluster
        self._name = name
        self._index = index
        self._imprint = imprint

    @property
    def done(self) -> int:
        """How many documents, from the corpus's first on, are known to be in the index."""
        return self._imprint.documents

    @property
    def digest(self) -> str:
        """The fingerprint of exactly these."""
        return self._imprint.fingerprint

    @classmethod
    def begin(cls, cluster: Cluster, settings: OpenSearchSettings) -> Load:
        """Take up the unfinished load of this name and these settings, or begin a new one."""
        _refuse_too_few_nodes(cluster, settings)
        kept = settings.model_dump(exclude={"urls", "nodes", "discover"}, exclude_none=True)
        fresh = IndexMetadata(kept, 0, "")
        name, load = settings.name, None
        for index, imprint in _ours(cluster, name, unfinished=True).items():
            same = (imprint.made_as, imprint.layout) == (fresh.made_as, fresh.layout)
            if same and imprint.documents and load is None:
                load = cls(cluster, name, index, imprint)
                load._forget_the_rest()
            else:
                _remove(cluster, index)
        if load is None:
            load = cls(cluster, name, f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}", fresh)
            body = _body(settings, fresh)
            if settings.vectors is not None:
                _add_vectors(body, cluster, settings.vectors)
            cluster.request("PUT", f"/{load._index}", body)
        load._wait_for_copies()
        return load

    def fill(
        self,
        documents: Iterable[Document],
        fingerprint: Fingerprint,
        on_acknowledged: Callable[[Sequence[str]], None],
        note_every: float,
        vectors: StoredRows | None = None,
    ) -> None:
        """Put the documents that follow those done, whose fingerprint is given."""
        noted = time.monotonic()
        chunks = cut(documents, self.done, fingerprint, vectors)
        with closing(in_parallel(self._cluster, self._put, chunks)) as acknowledged:
            for chunk in acknowledged:
                on_acknowledged([write.doc_id for write in chunk.writes])
                self._imprint = replace(
                    self._imprint, documents=chunk.end, fingerprint=chunk.digest
                )
                if time.monotonic() - noted >= note_every:
                    self._imprint.write(self._cluster, self._index)
                    noted = time.monotonic()
        if not self.done:
            self.discard()
            raise IndexProblem("the corpus holds no document; check that `corpus_format` reads it")
        self._imprint.write(self._cluster, self._index)

    def finish(self) -> None:
        """Check that all is there, let searches see it, and remove what it replaces."""
        cluster, index = self._cluster, self._index
        cluster.ask("POST", f"/{index}/_refresh", within=_LONG)
        held = count(cluster, index)
        if held != self.done:
            self.discard()
            raise EngineProblem(
                f"the cluster holds {held:,} of {self.done:,} documents it acknowledged; it lost "
                "shards, or something else wrote to the index. The load is discarded: run it again"
            )
        cluster.ask("PUT", f"/{index}/_settings", {"index": {"refresh_interval": None}})
        old = [other for other in _ours(cluster, self._name) if other != index]
        actions: list[dict[str, Any]] = [
            {"remove": {"index": index, "alias": _loading(self._name)}},
            {"add": {"index": index, "alias": self._name}},
            *({"remove_index": {"index": other}} for other in old),
        ]
        cluster.request("POST", "/_aliases", {"actions": actions})

    def discard(self) -> None:
        """Nothing of it remains; what served before goes on serving."""
        _remove(self._cluster, self._index)

    def _put(self, chunk: Chunk) -> None:
        """Every document of the chunk is in the index when this returns."""
        writes: Sequence[Write] = chunk.writes
        while writes:
            writes = self._settled(send(self._cluster, _loading(self._name), writes))

    def _settled(self, conflicts: Sequence[Write]) -> list[Write]:
        """What to send again of the creates that found their id taken.

        By our own earlier attempt, whose answer was lost: then once more, so that every copy has
        it before it counts. By another document: then the corpus holds the id twice.
        """
        if not conflicts:
            return []
        ids = {"ids": [write.doc_id for write in conflicts]}
        answer = self._cluster.ask(
            "POST", f"/{self._index}/_mget", ids, needs=("docs",), _source="position"
        )
        again = []
        for write, stored in zip(conflicts, answer["docs"], strict=True):
            if not stored.get("found"):  # gone with the node that had it
                again.append(write)
                continue
            here, there = json.loads(write.source)["position"], stored["_source"]["position"]
            if here != there:
                first, second = sorted((here + 1, there + 1))
                raise MalformedInput(
                    "the corpus",
                    None,
                    f"document id {write.doc_id!r} comes twice, as document {first:,} and "
                    f"{second:,}; every document needs an id of its own",
                )
            again.append(replace(write, operation="index"))
        return again

    def _forget_the_rest(self) -> None:
        """Remove what an earlier run sent after it last noted its progress."""
        self._cluster.ask("POST", f"/{self._index}/_refresh", within=_LONG)
        self._cluster.ask(
            "POST",
            f"/{self._index}/_delete_by_query",
            {"query": {"range": {"position": {"gte": self.done}}}},
            within=_LONG,
            conflicts="proceed",
            refresh="true",
        )

    def _wait_for_copies(self) -> None:
        """A document is safe against the loss of a node only once its shard has its replicas."""
        health = self._cluster.ask(
            "GET",
            f"/_cluster/health/{self._index}",
            needs=("timed_out", "status"),
            ignore=(408,),
            wait_for_active_shards="all",
            timeout=_PLACING,
        )
        if health["timed_out"]:
            raise EngineProblem(
                f"the cluster is {health['status']}: it could not place every shard of "
                f"{self._index} in {_PLACING}. GET _cluster/allocation/explain says why (disk "
                "space, missing nodes); then run the load again"
            )


def count(cluster: Cluster, index: str) -> int:
    """How many documents searches see; raises if a shard is missing."""
    answer = cluster.ask("GET", f"/{index}/_count", needs=("count", "_shards"))
    shards = answer["_shards"]
    if shards["successful"] < shards["total"]:
        raise cluster.refusal(503, f"only {shards['successful']} of {shards['total']} shards count")
    return int(answer["count"])


def imprint_of(settings: OpenSearchSettings, cluster: Cluster) -> IndexMetadata:
    """What the index of this name says of itself; raises IndexProblem where there is none."""
    found = cluster.ask("GET", f"/{settings.name}/_mapping", ignore=(404,))
    if not found:
        raise cluster.no_engine(str(found))
    imprint = None if "error" in found else IndexMetadata.read(next(iter(found.values())))
    if imprint is None:
        where = ", ".join(cluster.route.named)
        raise IndexProblem(
            f"{where} holds no index {settings.name!r} made by secondlook; "
            "make it with: secondlook index CORPUS INDEX --engine opensearch"
        )
    return imprint


def _refuse_too_few_nodes(cluster: Cluster, settings: OpenSearchSettings) -> None:
    health = cluster.ask("GET", "/_cluster/health", needs=("number_of_data_nodes",))
    nodes = health["number_of_data_nodes"]
    if settings.replicas >= nodes:
        raise EngineProblem(
            f"{settings.replicas} replicas need {settings.replicas + 1} data nodes, and the "
            f"cluster has {nodes}: start more nodes, or give fewer `replicas`"
        )


def _loading(name: str) -> str:
    return f"{name}-loading"


def _ours(cluster: Cluster, name: str, *, unfinished: bool = False) -> dict[str, IndexMetadata]:
    """The physical indices that loads of this name have made; raises if another holds the name."""
    found = cluster.ask(
        "GET",
        f"/{name},{name}-*",
        ignore_unavailable="true",
        filter_path="*.aliases,*.mappings._meta,*.settings.index.uuid",
    )
    ours = {}
    for index, described in found.items():
        imprint, aliases = IndexMetadata.read(described), described.get("aliases", {})
        if imprint and imprint.made_as["name"] == name:
            if not unfinished or _loading(name) in aliases:
                ours[index] = imprint
        elif not {name, _loading(name)}.isdisjoint({index, *aliases}):
            raise EngineProblem(
                f"the cluster has an index {index!r} under the name {name!r} that secondlook did "
                "not make, and will not touch: choose another `name`"
            )
    return ours


def _remove(cluster: Cluster, index: str) -> None:
    cluster.ask("DELETE", f"/{index}", ignore=(404,))


def _on_cluster(analyzer: str) -> str:
    """The cluster's own analyzer that comes nearest to ours; a name we lack is the cluster's."""
    if analyzer not in ANALYZERS:
        return analyzer
    if (built_in := ANALYZERS[analyzer]().opensearch) is None:
        raise EngineProblem(
            f"the text analyzer {analyzer!r} has no counterpart on a cluster; index with bm25s, or "
            "choose another language"
        )
    return built_in


def _add_vectors(body: dict[str, Any], cluster: Cluster, field: VectorField) -> None:
    """Documents with a vector each; raises EngineProblem where the cluster cannot keep them."""
    product, described = _checked_vector_field(cluster, field.dimension)
    body["settings"] |= vector_settings(product)
    body["mappings"]["properties"][VECTOR] = described
    body["mappings"]["_source"]["excludes"].append(VECTOR)  # searched and compared, never shown


def _checked_vector_field(cluster: Cluster, dimension: int) -> tuple[Product, dict[str, Any]]:
    """How this cluster's mappings describe a vector; raises EngineProblem where it keeps none."""
    product = product_of(cluster.ask("GET", "/", needs=("version",)))
    if product == "opensearch":
        plugins = cluster.ask(  # unless this user may not know them
            "GET", "/_nodes/plugins", ignore=(403,), filter_path="nodes.*.plugins.name"
        )
        for node in plugins.get("nodes", {}).values():
            if "opensearch-knn" not in {one["name"] for one in node.get("plugins", [])}:
                raise EngineProblem(
                    "a node of the cluster has no k-NN plugin (opensearch-knn), which vectors "
                    "need: install it, or index without vectors"
                )
    return product, vector_field(product, dimension)


def _body(settings: OpenSearchSettings, imprint: IndexMetadata) -> dict[str, Any]:
    """A new index. One field is searched, and BM25 counts its length: title and text together.

    Title and text themselves are only kept, for `fetch`. Without positions the index is a fifth
    smaller and fills faster; it answers no phrase queries, which BM25 has no use for. A weighed
    document brings what is searched itself, thousands of repeated words that are not kept.
    """
    kept = {"type": "text", "index": False, "norms": False, "copy_to": CONTENTS}
    return {
        "aliases": {_loading(settings.name): {}},
        "settings": {
            "number_of_shards": settings.shards,
            # from the start: a document acknowledged without them is lost with one node
            "number_of_replicas": settings.replicas,
            "refresh_interval": "-1",
            "similarity": {"bm25": {"type": "BM25", "k1": settings.k1, "b": settings.b}},
        },
        "mappings": {
            "_meta": {"secondlook": asdict(imprint)},
            "dynamic": "strict",
            "_source": {"excludes": [CONTENTS]},
            "properties": {
                "doc_id": {"type": "keyword", "index": False},
                "position": {"type": "long", "doc_values": False},
                "title": kept,
                "text": kept,
                QUERIES: kept,
                SHOWN: {"type": "object", "enabled": False},
                CONTENTS: {
                    "type": "text",
                    "analyzer": _on_cluster(settings.analyzer),
                    "similarity": "bm25",
                    "index_options": "freqs",
                },
            },
        },
    }
