"""The cluster engine: OpenSearch, or Elasticsearch through the same HTTP API."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from secondlook.data.fingerprint import Fingerprint
from secondlook.data.lock import Hold
from secondlook.errors import EngineProblem, IndexProblem, MissingDocument, SecondlookError
from secondlook.retrieve.access import Access, Route, plain_urls
from secondlook.retrieve.bulk import SHOWN, Write, batches, send, write_of
from secondlook.retrieve.cluster import LOADING, Cluster, OpenSearchSettings
from secondlook.retrieve.cluster_vectors import VECTOR, ClusterVectors, as_json, product_of
from secondlook.retrieve.engines import Health, known
from secondlook.retrieve.folder import IndexCard, read_card, write_card
from secondlook.retrieve.load import Load, check, count, imprint_of
from secondlook.retrieve.lucene import SearchBody, is_too_long, match, most_telling, msearch
from secondlook.retrieve.nodes import other_nodes
from secondlook.retrieve.opensearch_folder import claim, settings_in
from secondlook.retrieve.search_options import refuse_no_hits
from secondlook.retrieve.vector_files import remove_vectors
from secondlook.types import Document, Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.retrieve.vector_files import StoredRows, VectorCard

__all__ = ["OpenSearchIndex", "OpenSearchSettings"]

T = TypeVar("T")
Encode = Callable[[list[Document]], Sequence["NDArray[np.float32]"]]
"""Makes a vector of each document."""

_MOST_HITS = 10_000  # index.max_result_window
_QUERIES_AT_ONCE = 4  # in one request
_REQUESTS_AT_ONCE = 4  # so that some are searched while others are read
_TEXTS_AT_ONCE = 500
_ENCODED_AT_ONCE = 256
_UPDATED = "+updates"
_NODES_WHEN_MADE = 5.0  # seconds for a node to answer; a load takes longer anyway
_NODES_WHEN_OPENED = 0.5  # a person waits for the search


class OpenSearchIndex:
    """BM25 on a cluster, and vectors: sharded, replicated, updated while it serves.

    Scores are the cluster's: k1 + 1 times what Lucene's BM25 is today, in the same order.
    """

    stores_vectors = True
    """Vectors go to the cluster with their documents, not into the folder."""

    def __init__(self, folder: Path, settings: OpenSearchSettings, cluster: Cluster) -> None:
        self._folder = folder
        self._cluster = cluster
        self._card = _card(settings, cluster)
        self._settings = OpenSearchSettings.model_validate(self._card.settings)

    @property
    def card(self) -> IndexCard:
        """What the cluster says: another machine may have re-indexed since the folder was made."""
        return self._card

    def stored_bytes(self) -> int:
        """What its documents take on the cluster, vectors included, without replicas."""
        found = self._cluster.ask("GET", f"/{self._settings.name}/_stats/store", needs=("_all",))
        return int(found["_all"]["primaries"]["store"]["size_in_bytes"])

    def verify(self) -> None:
        """Whether every shard is there, with as many documents as were loaded."""
        name = self._settings.name
        health = self._cluster.ask("GET", f"/_cluster/health/{name}", needs=("status",))
        if health["status"] == "red":
            raise self._cluster.refusal(503, "a shard has no copy", f"index {name!r}")
        imprint, held = imprint_of(self._settings, self._cluster), count(self._cluster, name)
        if held != imprint.documents and not imprint.fingerprint.endswith(_UPDATED):
            raise IndexProblem(
                f"index {name!r} holds {held:,} documents, and {imprint.documents:,} were loaded: "
                "something else wrote to it. Make it anew with: secondlook index CORPUS INDEX "
                "--replace"
            )

    @classmethod
    def options(cls, folder: Path, **given: Any) -> OpenSearchSettings:  # noqa: ANN401 - see Engine
        """Of what was given, all that OpenSearchSettings has, and `url`, one or several.

        The cluster is that of OPENSEARCH_URL, or this machine's, where none was named; the index
        is called like the folder.
        """
        url = given.get("url")
        urls = (url,) if isinstance(url, str) else url
        urls = urls or Access.from_environment(os.environ).urls or ("http://localhost:9200",)
        own = {"name": folder.absolute().name, "urls": tuple(urls)}
        return OpenSearchSettings.model_validate(own | known(OpenSearchSettings, given))

    @classmethod
    def check(cls, url: str | None) -> Health:
        """Whether its client is installed and, where `url` is given, what answers there."""
        if find_spec("opensearchpy") is None:
            return Health(usable=False, note="its client is not installed")
        if url is None:
            return Health(usable=True, note="name a cluster with --url to check it")
        try:
            route = Route.named_by_user(Access.from_environment(os.environ), plain_urls([url]))
            answer = Cluster.connect(route).request("GET", "/", needs=("version",), within=5)
            version = answer["version"]
            product = version.get("distribution", "elasticsearch")
            return Health(usable=True, note=f"{url} is {product} {version['number']}")
        except SecondlookError as problem:
            return Health(usable=False, note=str(problem))
        except (KeyError, TypeError, AttributeError):
            return Health(usable=False, note=f"{url} answers, but is not a search engine")

    @classmethod
    def prepare(cls, folder: Path, settings: OpenSearchSettings, dimension: int) -> None:
        """Raise what `build` would, before vectors of so many dimensions are made for hours."""
        claim(folder)
        access = Access.from_environment(os.environ)
        check(Cluster.reach(Route.named_by_user(access, settings.urls)), settings, dimension)

    @classmethod
    def build(
        cls,
        folder: Path,
        documents: Iterable[Document],
        settings: OpenSearchSettings,
        *,
        vectors: StoredRows | None = None,
        on_acknowledged: Callable[[Sequence[str]], None] = lambda doc_ids: None,
        note_every: float = 10.0,
    ) -> OpenSearchIndex:
        """Load the documents in one pass; searches see all of them, or what they saw before.

        A load that was interrupted goes on where it last noted its progress (after so many
        seconds), if the corpus still begins the same. `vectors` has a row for each document, where
        the settings say that there are vectors. `on_acknowledged` gets the ids that the
        cluster has safely taken, in the corpus's order.
        """
        claim(folder)
        hold = Hold(folder, "what the cluster has taken is kept; the same command goes on there")
        access = Access.from_environment(os.environ)
        cluster = Cluster.reach(Route.named_by_user(access, settings.urls))
        access.remember(settings.urls)
        cluster, settings = _with_other_nodes(cluster, settings, _NODES_WHEN_MADE)
        load = Load.begin(cluster.with_patience(LOADING), settings)
        stream = iter(documents)
        fingerprint = Fingerprint.of(islice(stream, load.done))
        if load.done and fingerprint.digest() != load.digest:
            load.discard()
            if stream is documents:  # what was read cannot be read again
                raise EngineProblem(
                    f"an unfinished load of another corpus stood under {settings.name!r}, and is "
                    "now discarded: run this again"
                )
            return cls.build(
                folder,
                documents,
                settings,
                vectors=vectors,
                on_acknowledged=on_acknowledged,
                note_every=note_every,
            )
        load.fill(stream, fingerprint, on_acknowledged, note_every, vectors)
        load.finish()
        if settings.vectors is None:
            remove_vectors(folder)
        write_card(folder, _card(settings, cluster))
        hold.release()
        return cls(folder, settings, cluster)

    @classmethod
    def open(cls, folder: Path) -> OpenSearchIndex:
        """A finished index; asks the cluster whether it is there, and for its nodes of today.

        OPENSEARCH_URL in the environment says where the cluster is, whatever the folder says.
        """
        settings = settings_in(folder)
        access = Access.from_environment(os.environ)
        route = Route.named_by_folder(access, settings.urls, settings.nodes)
        cluster = Cluster.connect(route)
        index = cls(folder, settings, cluster)
        index._cluster, today = _with_other_nodes(cluster, settings, _NODES_WHEN_OPENED)
        if not access.urls and today.nodes != settings.nodes:
            index._note_nodes(today.nodes)
        return index

    def rebuild_settings(self) -> OpenSearchSettings:
        """What `build` takes to make it anew, on the cluster that it was reached on.

        Raises EngineProblem where only the folder names that cluster, and credentials are set.
        """
        route = self._cluster.route
        if route.withheld:
            raise EngineProblem(
                f"{', '.join(route.named)} would get your credentials with the documents: the "
                "index folder names this cluster, you have not. If you trust it, set "
                f"OPENSEARCH_URL={route.named[0]} in the environment"
            )
        return self._settings.model_copy(update={"urls": route.named})

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """The best `k` of the whole index, or an error: never of only some of its shards."""
        return self.ask([SearchBody(query, {"query": match(query.text)}) for query in queries], k)

    def ask(self, searches: Sequence[SearchBody], k: int) -> list[Ranking]:
        """The best `k` of each search, a few of them in one request, in the order given."""
        refuse_no_hits(k)
        if k > _MOST_HITS:
            raise EngineProblem(f"a cluster gives at most {_MOST_HITS:,} hits: ask for a smaller k")

        def ask(batch: Sequence[SearchBody]) -> list[Ranking]:
            return self._cluster.patiently(lambda: self._ask(batch, k))

        if len(searches) <= _QUERIES_AT_ONCE:
            return ask(searches) if searches else []
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            asked = pool.map(ask, _slices(searches, _QUERIES_AT_ONCE))
            return [ranking for rankings in asked for ranking in rankings]

    def vector_search(self, card: VectorCard) -> ClusterVectors:
        """Its vectors; raises IndexProblem where the cluster holds none made by that ranker."""
        field = self._settings.vectors
        if field is None or field.made_by != card.fingerprint:
            raise IndexProblem(
                f"index {self.name!r} on the cluster holds no vectors of {card.ranker}; make them "
                "with: secondlook index CORPUS INDEX --vectors RANKER"
            )
        answer = self._cluster.ask("GET", "/", needs=("version",))
        return ClusterVectors(self, card, product_of(answer))

    @property
    def name(self) -> str:
        """Of the index on the cluster."""
        return self._settings.name

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The texts, in the order asked for."""
        stored = self._get(doc_ids)
        return [
            Document(doc_id, shown["text"], shown["title"])
            for doc_id, source in zip(doc_ids, stored, strict=True)
            for shown in [source.get(SHOWN, source)]
        ]

    def upsert(self, documents: Iterable[Document], encode: Encode | None = None) -> None:
        """Add documents, or replace those of the same id; the next search sees them.

        A load that is under way replaces them again: it holds only its own corpus. An index with
        vectors needs what makes them, `encode`.
        """
        if self._settings.vectors is not None and encode is None:
            raise EngineProblem(
                f"index {self.name!r} has vectors, and the documents to add have none: add them "
                "with `secondlook add`, which encodes them"
            )

        def writes() -> Iterator[Write]:
            fingerprint, stream = Fingerprint(), iter(documents)
            while some := list(islice(stream, _ENCODED_AT_ONCE)):
                rows = encode(some) if encode is not None else [None] * len(some)
                for document, row in zip(some, rows, strict=True):
                    fingerprint.add(document)  # refuses what is no text, as a load does
                    more = {} if row is None else {VECTOR: as_json(row)}
                    yield write_of("index", document, **more)

        self._write(writes())

    def delete(self, doc_ids: Sequence[str]) -> None:
        """Remove documents, all or none if one is unknown; the next search misses them."""
        self._get(doc_ids)
        self._write(Write("delete", doc_id) for doc_id in doc_ids)

    def _ask(self, searches: Sequence[SearchBody], k: int) -> list[Ranking]:
        found = self._msearch(searches, k)
        too_long = [n for n, answer in enumerate(found) if is_too_long(answer)]
        if too_long:
            shorter = [
                replace(searches[n], body={"query": most_telling(searches[n].query.text)})
                for n in too_long
            ]
            for n, answer in zip(too_long, self._msearch(shorter, k), strict=True):
                found[n] = answer
        return [
            self._ranking(asked.query, answer)
            for asked, answer in zip(searches, found, strict=True)
        ]

    def _msearch(self, searches: Sequence[SearchBody], k: int) -> list[dict[str, Any]]:
        answer = self._cluster.request(
            "POST",
            f"/{self._settings.name}/_msearch",
            msearch(searches, k, of_all_shards=self._settings.shards > 1),
            needs=("responses",),
            filter_path=_ANSWER,
        )
        return list(answer["responses"])

    def _ranking(self, query: Query, found: dict[str, Any]) -> Ranking:
        if "error" in found:
            raise self._cluster.refusal(found["status"], found["error"], f"query {query.id!r}")
        shards = found["_shards"]
        if found["timed_out"] or shards["successful"] < shards["total"]:
            answered = f"only {shards['successful']} of {shards['total']} shards answered"
            raise self._cluster.refusal(503, answered, f"query {query.id!r}")
        hits = found.get("hits", {}).get("hits", ())
        return Ranking.of(
            query.id, [Hit(hit["fields"]["doc_id"][0], hit["_score"]) for hit in hits]
        )

    def _get(self, doc_ids: Sequence[str]) -> list[dict[str, Any]]:
        sources, missing = list[dict[str, Any]](), list[str]()
        for batch in _slices(doc_ids, _TEXTS_AT_ONCE):
            path = f"/{self._settings.name}/_mget"
            answer = self._cluster.ask("POST", path, {"ids": batch}, needs=("docs",))
            for stored in answer["docs"]:
                if stored.get("found"):
                    sources.append(stored["_source"])
                elif "error" not in stored or not stored["_id"]:  # no document has an empty id
                    missing.append(stored["_id"])
                else:
                    status = 404 if "index_not_found" in str(stored["error"]) else 503
                    subject = f"document {stored['_id']!r}"
                    raise self._cluster.refusal(status, stored["error"], subject)
        if missing:
            raise MissingDocument(missing, f"index {self._settings.name!r}")
        return sources

    def _note_nodes(self, nodes: tuple[str, ...]) -> None:
        """For when the named nodes are away; into the folder too, if it can be written."""
        self._settings = self._settings.model_copy(update={"nodes": nodes})
        self._card = _with_nodes(self._card, nodes)
        with suppress(OSError):
            write_card(self._folder, _with_nodes(read_card(self._folder), nodes))  # as it is by now

    def _write(self, writes: Iterator[Write]) -> None:
        """One batch after the other, so that of two writes of one document the later one stays."""
        name, cluster = self._settings.name, self._cluster.with_patience(LOADING)
        imprint = imprint_of(self._settings, cluster)
        if not imprint.fingerprint.endswith(_UPDATED):  # before, so that it is never untrue
            replace(imprint, fingerprint=imprint.fingerprint + _UPDATED).write(cluster, name)
        for batch in batches(writes):
            latest = {write.doc_id: write for write in batch}
            send(cluster, name, list(latest.values()))
        cluster.ask("POST", f"/{name}/_refresh")
        self._card = _card(self._settings, cluster)
        write_card(self._folder, self._card)


_ANSWER = ",".join(
    f"responses.{part}"
    for part in ("error", "status", "timed_out", "_shards", "hits.hits._score", "hits.hits.fields")
)


def _card(settings: OpenSearchSettings, cluster: Cluster) -> IndexCard:
    imprint = imprint_of(settings, cluster)
    return IndexCard(
        engine="opensearch",
        settings=OpenSearchSettings.model_validate(
            settings.model_dump(exclude={"vectors"}) | imprint.made_as
        ).model_dump(mode="json", exclude_none=True),
        documents=count(cluster, settings.name),
        fingerprint=imprint.fingerprint,
    )


def _with_nodes(card: IndexCard, nodes: tuple[str, ...]) -> IndexCard:
    return card.model_copy(update={"settings": {**card.settings, "nodes": list(nodes)}})


def _with_other_nodes(
    cluster: Cluster, settings: OpenSearchSettings, within: float
) -> tuple[Cluster, OpenSearchSettings]:
    """The same, with the cluster's nodes of today to fall back on."""
    nodes = other_nodes(cluster, within) if settings.discover else ()
    if nodes == cluster.route.others:
        return cluster, settings.model_copy(update={"nodes": nodes})
    if cluster.route.authorized and not cluster.route.access.urls:
        cluster.route.access.remember(nodes)  # a trusted cluster named them, certificates agree
    return cluster.with_others(nodes), settings.model_copy(update={"nodes": nodes})


def _slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
