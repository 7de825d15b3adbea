"""Training triples (query, relevant passage, another one) as a group file.

A group file is made once, beside the triples, and reused until these change: triples files are too
large to be held, and phases read their data in any order.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from secondlook.data import CorpusStore, TextTriple, read_corpus, read_queries, read_triples
from secondlook.data.beir import part
from secondlook.data.durable import write_at_once
from secondlook.data.irds import PREFIX
from secondlook.data.lock import locked
from secondlook.errors import MalformedInput, MissingQuery
from secondlook.train.groups import UNJUDGED, Group, write_groups
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from secondlook.data import IdTriple
    from secondlook.train.triples_settings import TriplesSettings

    Triple = IdTriple | TextTriple

_AT_ONCE = 4096  # triples whose passages are looked up together


def write_triple_groups(settings: TriplesSettings, folder: Path) -> Path:
    """Write the group file, unless it is there and up to date; gives where it is."""
    target = settings.groups_file(folder)
    if is_up_to_date(settings, folder):
        return target
    made_of = _sources(settings, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target):
        about = {"triples": Path(settings.file).name, "settings": settings.model_dump_json()}
        write_groups(target, triple_groups(settings, folder), about=about)
        write_at_once(_noted_sources(target), json.dumps(made_of))
    return target


def is_up_to_date(settings: TriplesSettings, folder: Path) -> bool:
    """Whether the group file is there, and was made of the files as they are now.

    Files that were removed since do not count: nothing could be made of them.
    """
    target = settings.groups_file(folder)
    if not target.is_file():
        return False
    noted = _noted_sources(target)
    made_of = json.loads(noted.read_text("utf-8")) if noted.is_file() else {}
    return all(made_of.get(kind) == now for kind, now in _sources(settings, folder).items())


def _noted_sources(target: Path) -> Path:
    """Where `_sources` are noted: not in the group file, which the same triples make the same."""
    return target.with_suffix(".sources.json")


def _sources(settings: TriplesSettings, folder: Path) -> dict[str, list[int]]:
    """Size and time of the files that are there; what `ir_datasets` has does not change."""
    named = {"triples": settings.file, "queries": settings.queries, "corpus": settings.corpus}
    sources = {}
    for kind, name in named.items():
        if name is not None and (path := folder / name).exists():
            about = (path if kind == "triples" else part(path, kind)).stat()
            sources[kind] = [about.st_size, about.st_mtime_ns]
    return sources


def triple_groups(settings: TriplesSettings, folder: Path) -> Iterator[Group]:
    """The groups of the triples; raises MalformedInput where ids come without their texts."""
    triples = read_triples(str(_found(folder, settings.file)))
    rng = Random(settings.seed)  # noqa: S311 - drawing, no secret
    drawn = (one for one in triples if settings.share == 1 or rng.random() < settings.share)
    by_query = _ByQuery(settings.passages, rng) if settings.by_query else None
    for number, triple in enumerate(_with_texts(drawn, settings, folder)):
        if by_query is None:
            query = Query(f"{triple.query.id}#{number}", triple.query.text)
            yield _group(query, [triple.positive], [triple.negative])
        else:
            by_query.add(triple)
    if by_query is not None:
        yield from by_query.groups()


@dataclass(frozen=True, slots=True)
class _Texts:
    """A triple with all its texts and ids."""

    query: Query
    positive: Document
    negative: Document


class _ByQuery:
    """Gathers what belongs to a query; of its other passages a sample of fixed size is held."""

    def __init__(self, passages: int, rng: Random) -> None:
        self._passages, self._rng = passages, rng
        self._queries: dict[str, Query] = {}
        self._positives: dict[str, dict[str, Document]] = {}
        self._others: dict[str, list[Document]] = {}
        self._seen: dict[str, int] = {}

    def add(self, triple: _Texts) -> None:
        """By reservoir sampling: every passage has the same chance to be held at the end."""
        query = triple.query.id
        self._queries.setdefault(query, triple.query)
        self._positives.setdefault(query, {})[triple.positive.id] = triple.positive
        others = self._others.setdefault(query, [])
        self._seen[query] = seen = self._seen.get(query, 0) + 1
        if len(others) < self._passages:
            others.append(triple.negative)
        elif (place := self._rng.randrange(seen)) < self._passages:
            others[place] = triple.negative

    def groups(self) -> Iterator[Group]:
        """In the order in which queries first came; what is relevant once is no negative."""
        for query_id, query in self._queries.items():
            positives = self._positives[query_id]
            others = {d.id: d for d in self._others[query_id] if d.id not in positives}
            if others:
                yield _group(query, list(positives.values()), list(others.values()))


def _group(query: Query, positives: list[Document], others: list[Document]) -> Group:
    documents = (*positives, *others)
    labels = (*[1] * len(positives), *[UNJUDGED] * len(others))
    return Group(query, documents, labels, (0,) * len(documents))


def _with_texts(
    triples: Iterable[Triple], settings: TriplesSettings, folder: Path
) -> Iterator[_Texts]:
    every = iter(triples)
    first = next(every, None)
    if first is None:
        raise MalformedInput(folder / settings.file, None, "no triple was drawn from it")
    every = chain([first], every)
    if isinstance(first, TextTriple):
        return map(_written_out, cast("Iterator[TextTriple]", every))
    if settings.queries is None or settings.corpus is None:
        raise MalformedInput(
            folder / settings.file,
            1,
            "holds ids; name the files with their texts as `queries` and `corpus` of the triples",
        )
    return _looked_up(
        cast("Iterator[IdTriple]", every),
        _found(folder, settings.queries),
        _found(folder, settings.corpus),
    )


def _written_out(triple: TextTriple) -> _Texts:
    """Its ids are digests of the texts, so that the same text has one id."""
    query, positive, negative = (_id(text) for text in astuple(triple))
    return _Texts(
        Query(query, triple.query),
        Document(positive, triple.positive),
        Document(negative, triple.negative),
    )


def _looked_up(triples: Iterator[IdTriple], queries: str, corpus: str) -> Iterator[_Texts]:
    texts = {query.id: query for query in read_queries(queries)}
    with (
        TemporaryDirectory() as folder,
        CorpusStore.build(Path(folder) / "corpus.sqlite", read_corpus(corpus)) as store,
    ):
        while some := list(islice(triples, _AT_ONCE)):
            ids = {d: None for one in some for d in (one.positive_id, one.negative_id)}
            passages = {document.id: document for document in store.fetch(list(ids))}
            for one in some:
                if one.query_id not in texts:
                    raise MissingQuery(one.query_id, queries)
                positive, negative = passages[one.positive_id], passages[one.negative_id]
                yield _Texts(texts[one.query_id], positive, negative)


def _found(folder: Path, name: str) -> str:
    """The file beside the recipe, or what `ir_datasets` calls it."""
    if name.startswith(PREFIX):
        return name
    if not (folder / name).exists():
        raise MalformedInput(
            folder / name,
            None,
            "the recipe names it and it is not there; give the folder that has it as `data`",
        )
    return str(folder / name)


def _id(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
