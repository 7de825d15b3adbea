"""An index that somebody else made and fills: searched as it is, and never written to."""

from __future__ import annotations

import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zlib import crc32

from pydantic import ValidationError

from secondlook.errors import (
    EngineProblem,
    Forbidden,
    IndexProblem,
    QueryRefused,
    SecondlookError,
    VanishedDocuments,
    WrongArgument,
)
from secondlook.retrieve.access import Access, Route
from secondlook.retrieve.attached_mapping import IndexState
from secondlook.retrieve.attached_query import QueryTemplate, StoredTemplate
from secondlook.retrieve.attached_reader import IndexReader
from secondlook.retrieve.attached_settings import AttachedSettings
from secondlook.retrieve.attached_text import values
from secondlook.retrieve.attached_watch import IndexWatch, refuse_unreadable
from secondlook.retrieve.cluster import Advice, Cluster, RetryPolicy
from secondlook.retrieve.engines import Health
from secondlook.retrieve.folder import CARD, read_card
from secondlook.retrieve.nodes import other_nodes
from secondlook.retrieve.search_options import SearchOptions, refuse_no_hits
from secondlook.types import Document, Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from secondlook.retrieve.folder import IndexCard

_LOGGER = logging.getLogger("secondlook.retrieve")
"""Goes to standard error, or to a server's log."""
_MOST_HITS = 10_000  # index.max_result_window, unless its owner has set another
_PAGE = 5_000
_SMALL_PAGE = 500
_TEXTS_AT_ONCE = 500
_REQUESTS_AT_ONCE = 8
_NODES_WHEN_OPENED = 0.5  # seconds; a person waits for the search
_MANY_QUERIES = RetryPolicy(retries=6)
"""Outlasts the loss of a node and the election of another manager."""

_TOO_MANY_TERMS = re.compile("too_many|maxClauseCount|max_clause_count")

ADVICE = Advice(
    forbidden=(
        "give the user or key the right to read this index (indices:data/read/*; on OpenSearch a "
        "stored search template takes indices:data/read/search/template too)"
    ),
    missing="has no such index",
    lost="check the name, or attach the index that took its place: secondlook attach INDEX",
)


class AttachedIndex:
    """A foreign index: its own documents, found by the user's own query.

    Scores are what the cluster gives for that query; where it sorts by something else, 1/rank.
    """

    queries_at_once = 512
    """How many queries to give to `retrieve`, so that its threads seldom wait for the last one."""
    how_to_change = "an attached index is filled by whoever made it; secondlook only reads it"

    def __init__(self, settings: AttachedSettings, cluster: Cluster, now: IndexState) -> None:
        self._settings = settings
        self._cluster = cluster
        self._reader = IndexReader(cluster, settings.name)
        self._patient = IndexReader(cluster.with_patience(_MANY_QUERIES), settings.name)
        self._query = settings.query_template()
        self._text, self._title = settings.text_template(), settings.title_template()
        self._options = SearchOptions()
        self._id_source: list[str] | bool = False if settings.id == "_id" else [settings.id]
        self._watch = IndexWatch(self._reader, settings, now)

    @classmethod
    def options(cls, folder: Path, **given: Any) -> AttachedSettings:  # noqa: ANN401 - see Engine
        """Refused: nothing of an attached index is made here."""
        raise WrongArgument(
            "an attached index is not filled by secondlook: use `secondlook attach` or attach_index"
        )

    @classmethod
    def build(
        cls, folder: Path, documents: Iterable[Document], settings: AttachedSettings
    ) -> AttachedIndex:
        """Refused likewise."""
        raise WrongArgument(cls.how_to_change)

    @classmethod
    def check(cls, url: str | None) -> Health:
        """Whether its client is installed; `opensearch` says what answers at the url."""
        usable = find_spec("opensearchpy") is not None
        note = (
            "attach an index with `secondlook attach`" if usable else "its client is not installed"
        )
        return Health(usable=usable, note=note)

    @classmethod
    def open(cls, folder: Path) -> AttachedIndex:
        """An attached index; looks at it, and says in the log what has changed.

        OPENSEARCH_URL in the environment says where the cluster is, whatever the folder says.
        """
        settings = _settings_in(folder)
        access = Access.from_environment(os.environ)
        route = Route.named_by_folder(access, settings.urls, settings.nodes)
        cluster = Cluster.connect(route, ADVICE)
        if settings.discover:
            nodes = other_nodes(cluster, _NODES_WHEN_OPENED)
            if nodes != route.others:
                cluster = cluster.with_others(nodes)
        reader = IndexReader(cluster, settings.name)
        mapping = reader.mapping()
        now = IndexState.of(mapping, reader.count())
        if changes := settings.seen.changes(now):
            _LOGGER.warning(
                "%s has changed since it was attached: %s. Attach it again to accept this",
                settings.name,
                "; ".join(changes),
            )
        refuse_unreadable(settings, mapping)
        return cls(settings, cluster, now)

    @property
    def card(self) -> IndexCard:
        """What there is now. The fingerprint says which index is read and how.

        Documents come and go in a live index, so it does not depend on them.
        """
        return self._watch.card

    @property
    def parameters(self) -> tuple[str, ...]:
        """The placeholders of the query template that a search may give values for."""
        return self._query.parameters

    def verify(self) -> None:
        """Whether everything that texts and ids are made of is still there."""
        now = self._watch.look()
        if now.indices != self._settings.seen.indices or now.fields != self._settings.seen.fields:
            raise IndexProblem(
                f"{self._settings.name} is not as it was attached: "
                f"{'; '.join(self._settings.seen.changes(now))}. Attach it again to accept this"
            )

    def stored_bytes(self) -> int:
        """What its documents take on the cluster; 0 where the user may not know."""
        try:
            return self._reader.stored_bytes()
        except Forbidden:
            return 0

    def with_options(self, options: SearchOptions) -> AttachedIndex:
        """The same index, searched with these filters, parameters and routing."""
        narrowed = copy(self)
        narrowed._options = options
        return narrowed

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """The best `k` by the user's own query, of all shards or an error."""
        refuse_no_hits(k)
        if len(queries) <= 1:
            return [self._search(self._reader, query, k) for query in queries]
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return list(pool.map(lambda query: self._search(self._patient, query, k), queries))

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The texts, in the order asked for; raises VanishedDocuments with those that are left."""
        found = self._sources(doc_ids, self._settings.read_fields)
        documents = {doc_id: self._document(doc_id, source) for doc_id, source in found.items()}
        gone = [doc_id for doc_id in doc_ids if doc_id not in documents]
        if gone:
            raise VanishedDocuments(gone, f"{self._settings.name!r}", documents)
        return [documents[doc_id] for doc_id in doc_ids]

    def signals(self, doc_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Of each document the values of the signal fields; without those that it lacks."""
        paths = self._settings.signals
        found = self._sources(doc_ids, paths)
        return [
            {path: held[0] for path in paths if (held := values(found.get(doc_id), path))}
            for doc_id in doc_ids
        ]

    def documents(self) -> Iterator[Document]:
        """Every document, as the index is at this moment."""
        body = {"query": {"match_all": {}}, "_source": list(self._settings.read_fields)}
        with self._patient.point_in_time(self._settings.product) as moment:
            pages = self._patient.pages(moment, [], lambda page: {**body, **page}, _SMALL_PAGE)
            for page in pages:
                yield from map(self.document, page)

    def document(self, hit: Mapping[str, Any]) -> Document:
        """A hit with its source, as a re-ranker reads it."""
        return self._document(self._id(hit), hit.get("_source", {}))

    def _search(self, reader: IndexReader, query: Query, k: int) -> Ranking:
        text = query.text
        while True:
            try:
                return self._ranking(query.id, self._hits(reader, text, k))
            except QueryRefused as refused:
                if not _TOO_MANY_TERMS.search(refused.reason) or len(text.split()) < 2:
                    raise
                words = text.split()  # more terms than the cluster takes in one query
                text = " ".join(words[: len(words) // 2])
                _LOGGER.warning(
                    "query %s is too long for the cluster: its first %d of %d words are searched",
                    query.id,
                    len(words) // 2,
                    len(words),
                )

    def _hits(self, reader: IndexReader, text: str, k: int) -> list[dict[str, Any]]:
        template, options = self._query, self._options
        if k > _MOST_HITS:
            return self._deep(reader, text, k)
        # The same text is answered by the same copy of a shard while the cluster stays as it is.
        preference = f"text{crc32(text.encode(errors='replace'))}"
        try:
            return reader.search(
                template.render(text, k, options, _source=self._id_source),
                stored=isinstance(template, StoredTemplate),
                routing=options.routing,
                preference=preference,
            )
        except QueryRefused as refused:
            if "window is too large" not in refused.reason:
                raise
            return self._deep(reader, text, k)

    def _deep(self, reader: IndexReader, text: str, k: int) -> list[dict[str, Any]]:
        """More hits than one answer holds, page by page."""
        template, options = self._query, self._options
        if not isinstance(template, QueryTemplate):
            raise EngineProblem(
                f"one answer of {self._settings.name} does not hold {k:,} hits, and a stored "
                "search template cannot be asked in pages: attach its search body instead"
            )
        hits: list[dict[str, Any]] = []
        size = _PAGE if k > _MOST_HITS else _SMALL_PAGE

        def body(page: dict[str, Any]) -> dict[str, Any]:
            return template.page(text, options, page, _source=self._id_source)

        with reader.point_in_time(self._settings.product, options.routing) as moment:
            for page in reader.pages(moment, template.sort, body, size):
                hits += page
                if len(hits) >= k:
                    break
        if template.by_score:
            for hit in hits:  # which has no other score where a sort was asked for
                hit["_score"] = hit["sort"][0]
        return hits[:k]

    def _ranking(self, query_id: str, hits: list[dict[str, Any]]) -> Ranking:
        self._watch.notice(hits)
        best: dict[str, float] = {}
        for rank, hit in enumerate(hits, start=1):
            score = hit.get("_score") if self._query.by_score else None
            best.setdefault(self._id(hit), 1 / rank if score is None else score)
        return Ranking.of(query_id, [Hit(doc_id, score) for doc_id, score in best.items()])

    def _id(self, hit: Mapping[str, Any]) -> str:
        if self._settings.id == "_id":
            return str(hit["_id"])
        held = values(hit.get("_source", {}), self._settings.id)
        if not held:
            raise IndexProblem(
                f"document {hit['_id']!r} of {self._settings.name} has no {self._settings.id!r}, "
                "which was chosen as the id: attach the index with another id"
            )
        return str(held[0])

    def _sources(self, doc_ids: Sequence[str], paths: Sequence[str]) -> dict[str, Any]:
        """What is stored of the documents that are there, by id."""
        wanted = list(dict.fromkeys(doc_ids))
        batches = [
            wanted[start : start + _TEXTS_AT_ONCE]
            for start in range(0, len(wanted), _TEXTS_AT_ONCE)
        ]
        if len(batches) < 2:
            found = [self._some_sources(batch, paths) for batch in batches]
        else:
            with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
                found = list(pool.map(lambda batch: self._some_sources(batch, paths), batches))
        return {doc_id: source for some in found for doc_id, source in some.items()}

    def _some_sources(self, doc_ids: Sequence[str], paths: Sequence[str]) -> dict[str, Any]:
        own = self._settings.id
        chosen = {"ids": {"values": doc_ids}} if own == "_id" else {"terms": {own: doc_ids}}
        size = min(_MOST_HITS, len(doc_ids) * max(1, len(self._watch.now.indices)))
        include = list(dict.fromkeys([*paths, *([] if own == "_id" else [own])]))
        hits = self._reader.search({"query": chosen, "size": size, "_source": include})
        sources = self._by_id(hits)
        left = [doc_id for doc_id in doc_ids if doc_id not in sources]
        if left and len(hits) == size and own != "_id":
            # Documents that share an id have filled the answer: of the others one of each.
            body = {"query": {"terms": {own: left}}, "size": len(left), "_source": include}
            sources |= self._by_id(self._reader.search({**body, "collapse": {"field": own}}))
        return sources

    def _by_id(self, hits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """What is stored of the first hit of each id."""
        sources: dict[str, Any] = {}
        for hit in hits:
            sources.setdefault(self._id(hit), hit.get("_source", {}))
        return sources

    def _document(self, doc_id: str, source: object) -> Document:
        title = self._title.text(source) if self._title else ""
        return Document(doc_id, self._text.text(source), title)


def _settings_in(folder: Path) -> AttachedSettings:
    try:
        return AttachedSettings.model_validate(read_card(folder).settings)
    except (ValidationError, SecondlookError) as error:
        if isinstance(error, IndexProblem):
            raise
        raise IndexProblem(
            f"{folder / CARD} cannot be read ({error}); attach the index again: secondlook attach "
            f"{folder}"
        ) from error
