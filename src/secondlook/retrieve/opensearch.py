"""The cluster engine: OpenSearch, or Elasticsearch through the same HTTP API."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from secondlook.data.fingerprint import Fingerprint
from secondlook.errors import EngineProblem, IndexProblem, MissingDocument
from secondlook.retrieve.bulk import Write, batches, send, write_of
from secondlook.retrieve.cluster import LOADING, Cluster, OpenSearchSettings
from secondlook.retrieve.folder import CARD, IndexCard, read_card, write_card
from secondlook.retrieve.load import Imprint, Load, count
from secondlook.types import Document, Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["OpenSearchIndex", "OpenSearchSettings"]

T = TypeVar("T")

_MOST_HITS = 10_000  # index.max_result_window
_MOST_TERMS = 1_024  # indices.query.bool.max_clause_count
_HITS_AT_ONCE = 40_000
_QUERIES_AT_ONCE = 32
_TEXTS_AT_ONCE = 500
_UPDATED = "+updates"


class OpenSearchIndex:
    """BM25 on a cluster: sharded, replicated, updated while it serves.

    Scores are the cluster's: k1 + 1 times what Lucene's BM25 is today, in the same order.
    """

    def __init__(self, folder: Path, settings: OpenSearchSettings, cluster: Cluster) -> None:
        self._folder = folder
        self._settings = settings
        self._cluster = cluster
        self._card = _card(settings, cluster)

    @property
    def card(self) -> IndexCard:
        """What the cluster says it holds, which another machine may have re-indexed since."""
        return self._card

    @classmethod
    def build(
        cls,
        folder: Path,
        documents: Iterable[Document],
        settings: OpenSearchSettings,
        *,
        on_acknowledged: Callable[[Sequence[str]], None] = lambda doc_ids: None,
        note_every: float = 10.0,
    ) -> OpenSearchIndex:
        """Load the documents in one pass; searches see all of them, or what they saw before.

        A load that was interrupted goes on where it last noted its progress (after so many
        seconds), if the corpus still begins the same. `on_acknowledged` gets the ids that the
        cluster has safely taken, in the corpus's order.
        """
        _claim(folder)
        cluster = Cluster.connect(settings)
        cluster.ask("GET", "/_cluster/health")  # nobody there? say so now, not after minutes
        load = Load.begin(cluster.with_patience(LOADING), settings)
        stream, fingerprint = iter(documents), Fingerprint()
        for document in islice(stream, load.done):
            fingerprint.add(document)
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
                on_acknowledged=on_acknowledged,
                note_every=note_every,
            )
        load.fill(stream, fingerprint, on_acknowledged, note_every)
        load.finish()
        write_card(folder, _card(settings, cluster))
        return cls(folder, settings, cluster)

    @classmethod
    def open(cls, folder: Path) -> OpenSearchIndex:
        """A finished index; asks the cluster whether it is there."""
        settings = OpenSearchSettings.model_validate(read_card(folder).settings)
        return cls(folder, settings, Cluster.connect(settings))

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """The best `k` of the whole index, or an error: never of the shards that happen to answer.

        Which of the documents that tie for the last place come in does not depend on the copy of
        the shard that answers.
        """
        if k > _MOST_HITS:
            raise EngineProblem(f"a cluster gives at most {_MOST_HITS:,} hits: ask for k ≤ that")
        size = max(1, min(_QUERIES_AT_ONCE, _HITS_AT_ONCE // max(k, 1)))
        with ThreadPoolExecutor(2) as pool:  # one batch is read while the next is searched
            found = pool.map(lambda batch: self._ask(batch, k), _slices(queries, size))
            return [ranking for rankings in found for ranking in rankings]

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The texts, in the order asked for."""
        stored = self._get(doc_ids)
        return [
            Document(doc_id, source["text"], source["title"])
            for doc_id, source in zip(doc_ids, stored, strict=True)
        ]

    def upsert(self, documents: Iterable[Document]) -> None:
        """Add documents, or replace those of the same id; the next search sees them.

        A load that is under way replaces them again: it holds only its own corpus.
        """
        self._write(write_of("index", document) for document in documents)

    def delete(self, doc_ids: Sequence[str]) -> None:
        """Remove documents, all or none if one is unknown; the next search misses them."""
        self._get(doc_ids)
        self._write(Write("delete", doc_id) for doc_id in doc_ids)

    def _ask(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """One msearch, repeated while the cluster is busy with any of its queries."""
        body = "".join(f"{_HEADER}\n{json.dumps(_search(query.text, k))}\n" for query in queries)
        exact = "dfs_" if self._settings.shards > 1 else ""  # term statistics of all shards

        def attempt() -> list[Ranking]:
            answer = self._cluster.request(
                "POST",
                f"/{self._settings.name}/_msearch",
                body,
                filter_path=_ANSWER,
                search_type=f"{exact}query_then_fetch",
            )
            return [
                self._ranking(query, found)
                for query, found in zip(queries, answer["responses"], strict=True)
            ]

        return self._cluster.patiently(attempt)

    def _ranking(self, query: Query, found: dict[str, Any]) -> Ranking:
        if "error" in found:
            raise self._cluster.refusal(found["status"], found["error"], f"query {query.id!r}")
        shards = found["_shards"]
        if found["timed_out"] or shards["successful"] < shards["total"]:
            answered = f"only {shards['successful']} of {shards['total']} shards answered"
            raise self._cluster.refusal(503, answered, f"query {query.id!r}")
        hits = found.get("hits", {}).get("hits", ())
        return Ranking(query.id, tuple(Hit(hit["sort"][1], hit["sort"][0]) for hit in hits))

    def _get(self, doc_ids: Sequence[str]) -> list[dict[str, str]]:
        sources, missing = list[dict[str, str]](), list[str]()
        for batch in _slices(doc_ids, _TEXTS_AT_ONCE):
            path = f"/{self._settings.name}/_mget"
            for stored in self._cluster.ask("POST", path, {"ids": batch})["docs"]:
                if stored.get("found"):
                    sources.append(stored["_source"])
                elif "error" not in stored or not stored["_id"]:  # no document has an empty id
                    missing.append(stored["_id"])
                else:
                    subject = f"document {stored['_id']!r}"
                    raise self._cluster.refusal(503, stored["error"], subject)
        if missing:
            raise MissingDocument(missing, f"index {self._settings.name!r}")
        return sources

    def _write(self, writes: Iterator[Write]) -> None:
        """One batch after the other, so that of two writes of one document the later one stays."""
        name, cluster = self._settings.name, self._cluster.with_patience(LOADING)
        imprint = _imprint(self._settings, cluster)
        if not imprint.fingerprint.endswith(_UPDATED):  # before, so that it is never untrue
            replace(imprint, fingerprint=imprint.fingerprint + _UPDATED).write(cluster, name)
        for batch in batches(writes):
            latest = {write.doc_id: write for write in batch}
            send(cluster, name, list(latest.values()))
        cluster.ask("POST", f"/{name}/_refresh")
        self._card = _card(self._settings, cluster)
        write_card(self._folder, self._card)


_HEADER = json.dumps({"allow_partial_search_results": False})
_ANSWER = ",".join(
    f"responses.{part}" for part in ("error", "status", "timed_out", "_shards", "hits.hits.sort")
)


def _search(text: str, k: int) -> dict[str, Any]:
    """Ids and scores come as sort values, from doc values: no stored field is read."""
    return {
        "query": _match(text),
        "size": k,
        "sort": [{"_score": "desc"}, {"doc_id": "desc"}],
        "track_total_hits": False,
        "_source": False,
        "stored_fields": "_none_",
    }


def _match(text: str) -> dict[str, Any]:
    """Any text at all, as a disjunction of its terms.

    Lucene takes so many clauses and counts a repeated word each time. A text too short to hold
    that many words goes as it is; in a longer one each distinct word goes once, weighted by how
    often it comes, which gives the same scores.
    """
    if len(text) < 2 * _MOST_TERMS:
        return {"match": {"contents": text}}
    words = text.split()
    by_times: defaultdict[int, list[str]] = defaultdict(list)
    for word, times in Counter(words).items():
        by_times[times].append(word)
    return {
        "bool": {
            "should": [
                {"match": {"contents": {"query": " ".join(distinct), "boost": times}}}
                for times, distinct in by_times.items()
            ]
        }
    }


def _card(settings: OpenSearchSettings, cluster: Cluster) -> IndexCard:
    imprint = _imprint(settings, cluster)
    return IndexCard(
        engine="opensearch",
        settings=settings.model_dump(mode="json"),
        documents=count(cluster, settings.name),
        fingerprint=imprint.fingerprint,
    )


def _imprint(settings: OpenSearchSettings, cluster: Cluster) -> Imprint:
    found = cluster.ask("GET", f"/{settings.name}/_mapping", ignore=(404,))
    imprint = None if "error" in found else Imprint.read(next(iter(found.values())))
    if imprint is None:
        raise IndexProblem(
            f"{', '.join(settings.urls)} holds no index {settings.name!r} made by secondlook; make "
            "it with: secondlook index CORPUS INDEX --engine opensearch"
        )
    return imprint


def _claim(folder: Path) -> None:
    """Before hours of loading: the card will go into this folder, and nothing else is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    strangers = [path for path in folder.iterdir() if path.name != CARD]
    if strangers or ((folder / CARD).exists() and read_card(folder).engine != "opensearch"):
        raise IndexProblem(f"{folder} holds something else; name another folder for this index")


def _slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
