"""Attach an index that exists on a cluster, as it is; nothing is written there."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.errors import IndexProblem, MalformedInput
from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.retrieve.attached import AttachedIndex
    from secondlook.retrieve.attached_settings import AttachedSettings
    from secondlook.retrieve.cluster import Cluster
    from secondlook.retrieve.search_index import SearchIndex
    from secondlook.types import Document

_LOOKED_AT = 50  # documents
_SHOWN = 3
_SHOWN_CHARACTERS = 300
_TRIED_WORDS = 6
_NODES_WHEN_ATTACHED = 5.0  # seconds for a node to answer


@dataclass(frozen=True, slots=True)
class AttachResult:
    """An attached index, how it is read, and how that looks."""

    folder: Path
    index: SearchIndex
    settings: AttachedSettings
    documents: tuple[Document, ...]
    """Three of the index, as a re-ranker reads them."""
    oddities: tuple[str, ...]
    """What is unusual about the index."""
    tried: str
    """The query that was tried."""
    hits: tuple[tuple[float, Document], ...]
    """Its best hits, with their scores."""

    def summary(self) -> str:
        """Everything a person should look at before using it."""
        return "\n".join([*self._proposal(), *self._documents(), *self._trial()])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "folder": str(self.folder),
            "documents": len(self.index),
            "settings": self.settings.model_dump(mode="json", exclude={"seen"}),
            "unusual": list(self.oddities),
            "tried": self.tried,
            "hits": [[score, document.id] for score, document in self.hits],
        }

    def _proposal(self) -> list[str]:
        settings = self.settings
        query = settings.template or json.dumps(settings.query, ensure_ascii=False)
        about = {
            "index": f"{settings.name} ({', '.join(settings.seen.indices[:3])}), "
            f"{settings.seen.documents:,} documents",
            "query": query,
            "parameters": ", ".join(self.index.engine.parameters),  # type: ignore[attr-defined]
            "title": settings.title or "none",
            "text": settings.text,
            "id": settings.id,
            "signals": ", ".join(settings.signals) or "none",
            "words match": settings.analyzer,
        }
        lines = [f"{name:<12} {value}" for name, value in about.items() if value]
        odd = [f"  - {oddity}" for oddity in self.oddities] or ["  nothing"]
        return [*lines, "", "unusual:", *odd]

    def _documents(self) -> list[str]:
        lines = ["", "documents as a re-ranker reads them:"]
        for document in self.documents:
            lines += [f"  {document.id}", f"    title: {document.title or '(none)'}"]
            lines.append(f"    text:  {_cut(document.text) or '(none)'}")
        return lines

    def _trial(self) -> list[str]:
        lines = ["", f"tried: {self.tried}"]
        for rank, (score, document) in enumerate(self.hits, start=1):
            shown = document.title or _cut(document.text, 80)
            lines.append(f"  {rank}. {score:.3f}  {document.id}  {shown}")
        return lines if self.hits else [*lines, "  nothing was found"]


def attach_index(
    folder: str | Path,
    *,
    index: str,
    url: str | Sequence[str] | None = None,
    query: Mapping[str, Any] | str | Path | None = None,
    template: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    text: str | None = None,
    title: str | None = None,
    id: str = "_id",  # noqa: A002 - what it is called in the index
    signals: Sequence[str] | None = None,
    language: str | None = None,
    try_query: str | None = None,
    discover: bool = True,
    replace: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> AttachResult:
    """Attach an existing index, alias or data stream of OpenSearch or Elasticsearch.

    Writes `folder`, and nothing to the cluster. What is not given is proposed by the mapping and
    some documents, and tried at once. `query` is a search body, or a file of it, with `{{query}}`
    where the words go; other placeholders are parameters that a search gives, or that have a
    default in `parameters`. `template` is the id of a stored search template instead. `text` and
    `title` are made of fields, as in "{{name}}. {{description}}". `id` is `_id` or a field.
    `signals` are numeric and date fields. Credentials come from the environment.

    >>> import secondlook as sl
    >>> attached = sl.attach_index("my.index", url="https://localhost:9200", index="products",
    ...     text="{{name}}. {{description}}", title="{{name}}")  # doctest: +SKIP
    >>> acme = [{"term": {"brand": "acme"}}]
    >>> attached.index.retrieve(["red shoes"], k=10, filters=acme)  # doctest: +SKIP
    """
    from secondlook.data.durable import refuse_to_overwrite
    from secondlook.retrieve.attached_settings import refuse_no_name
    from secondlook.retrieve.attached_watch import card_of
    from secondlook.retrieve.folder import CARD, write_card
    from secondlook.retrieve.search_index import SearchIndex
    from secondlook.retrieve.vector_files import is_of_vectors

    refuse_no_name(index)
    target = Path(folder)
    refuse_to_overwrite(target / CARD, replace=replace)
    there = target.iterdir() if target.is_dir() else ()
    if any(path.name != CARD and not is_of_vectors(path) for path in there):
        raise IndexProblem(f"{target} holds something else; name another folder")
    given = {
        "name": index,
        "discover": discover,
        "query": _body(query),
        "template": template,
        "parameters": dict(parameters or {}),
        "text": text,
        "title": title,
        "id": id,
        "signals": None if signals is None else tuple(signals),
        "analyzer": language,
    }
    with as_progress(progress).busy("looking at the index"):
        look = _look(given, url)
        tried = try_query or _words(look.documents)
        hits, odd = _trial(look, tried)
    write_card(target, card_of(look.settings, look.settings.seen))
    return AttachResult(
        target,
        SearchIndex(look.index),
        look.settings,
        look.documents[:_SHOWN],
        (*look.oddities, *odd),
        tried,
        hits,
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """A first look at an index."""

    index: AttachedIndex
    settings: AttachedSettings
    documents: tuple[Document, ...]
    oddities: tuple[str, ...]


def _look(given: Mapping[str, Any], url: str | Sequence[str] | None) -> _Look:
    """Read mapping and some documents, and settle how the index is read."""
    from secondlook.retrieve.attached import AttachedIndex
    from secondlook.retrieve.attached_mapping import IndexState
    from secondlook.retrieve.attached_proposal import oddities, propose, refuse_unknown_fields
    from secondlook.retrieve.attached_reader import IndexReader
    from secondlook.retrieve.attached_settings import AttachedSettings
    from secondlook.retrieve.attached_watch import refuse_unreadable

    cluster, place = _connected(url, discover=given["discover"])
    reader = IndexReader(cluster, given["name"])
    mapping = reader.mapping()
    hits = reader.search({"query": {"match_all": {}}, "size": _LOOKED_AT})
    sources = [hit.get("_source", {}) for hit in hits]
    proposed = propose(mapping, sources)
    chosen = {key: value for key, value in given.items() if value is not None}
    if "text" in chosen:
        proposed.pop("title", None)  # it would repeat, or miss, what the user chose
    if "template" in chosen:
        proposed.pop("query", None)
    about = {**proposed, **place, **chosen}
    for key, needed in {"text": "text", "query": "query or template"}.items():
        if key not in about and "template" not in about:
            raise IndexProblem(
                f"{given['name']} has no field of text that this user may read: give {needed}"
            )
    state = IndexState.of(mapping, reader.count())
    settings = AttachedSettings(**about, product=reader.product(), seen=state)
    refuse_unreadable(settings, mapping)
    refuse_unknown_fields(settings, mapping, sources)
    index = AttachedIndex(settings, cluster, state)
    documents = tuple(map(index.document, hits))
    odd = oddities(settings, mapping, sources, documents)
    return _Look(index, settings, documents, tuple(odd))


def _connected(
    url: str | Sequence[str] | None, *, discover: bool
) -> tuple[Cluster, dict[str, Any]]:
    """The cluster that the user named, and where it is."""
    from secondlook.retrieve.access import Access, Route, plain_urls
    from secondlook.retrieve.attached import ADVICE
    from secondlook.retrieve.cluster import Cluster
    from secondlook.retrieve.nodes import other_nodes

    access = Access.from_environment(os.environ)
    named = (url,) if isinstance(url, str) else tuple(url or ())
    urls = plain_urls(named) or access.urls or ("http://localhost:9200",)
    cluster = Cluster.connect(Route.named_by_user(access, urls), ADVICE)
    nodes = other_nodes(cluster, _NODES_WHEN_ATTACHED) if discover else ()
    access.remember([*urls, *nodes])
    if nodes:
        cluster = cluster.with_others(nodes)
    return cluster, {"urls": urls, "nodes": nodes}


def _trial(look: _Look, words: str) -> tuple[tuple[tuple[float, Document], ...], list[str]]:
    """The best hits of a query, and what is unusual about them."""
    from secondlook.rank.present import fetch_present
    from secondlook.types import Query

    query = Query("trial", words)
    (ranking,) = look.index.retrieve([query], 10)
    odd = []
    if not ranking.hits:
        odd.append(f"the query found nothing for {words!r}, words of one of its documents")
    if look.settings.template is not None and len(ranking.hits) > 1:
        (one,) = look.index.retrieve([query], 1)
        if len(one.hits) > 1:
            odd.append(
                f"the stored search template has no {{{{size}}}}: it gives {len(one.hits)} hits, "
                "whatever depth is asked for"
            )
    best = ranking.hits[:_SHOWN]
    texts = fetch_present(look.index, [hit.doc_id for hit in best])
    return tuple((hit.score, texts[hit.doc_id]) for hit in best if hit.doc_id in texts), odd


def _body(query: Mapping[str, Any] | str | Path | None) -> dict[str, Any] | None:
    """The search body that was given, or that a file holds."""
    if query is None:
        return None
    if not isinstance(query, str | Path):
        return dict(query)
    path = Path(query)
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MalformedInput(path, None, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise MalformedInput(
            path,
            getattr(error, "lineno", None),
            'it is no JSON; a placeholder stands in quotes, as in "size": "{{size}}", and its '
            "value keeps its type",
        ) from error
    if not isinstance(body, dict):
        raise MalformedInput(path, None, 'a search body is an object, as in {"query": …}')
    return body


def _words(documents: Sequence[Document]) -> str:
    """A query that should find something: the first words of a document."""
    said = next((d.title or d.text for d in documents if d.title or d.text), "test")
    return " ".join(re.findall(r"\w+", said)[:_TRIED_WORDS])


def _cut(text: str, most: int = _SHOWN_CHARACTERS) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}… ({len(text.split()):,} words)"
