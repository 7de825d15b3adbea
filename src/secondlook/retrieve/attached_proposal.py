"""How a foreign index is best read, by its mapping and some of its documents; and what is odd."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from secondlook.analyze import ANALYZERS
from secondlook.errors import IndexProblem
from secondlook.retrieve.attached_mapping import EXACT, NUMBERS_AND_DATES, TEXT, named
from secondlook.retrieve.attached_query import QueryTemplate
from secondlook.retrieve.attached_text import values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from secondlook.retrieve.attached_mapping import IndexField, IndexMapping
    from secondlook.retrieve.attached_settings import AttachedSettings
    from secondlook.types import Document

    Sources = Sequence[Mapping[str, Any]]

_TITLES = ("title", "name", "headline", "subject", "label")
_TITLE_CHARACTERS = 150
_TEXTS = 4  # fields that a text is proposed of
_NO_PROSE = re.compile(r"\s*(https?://|[\[{<]|[\w+/=]{60,})")
_MARKUP = re.compile(r"</?(p|br|div|span|li|ul|b|i|a|h[1-6]|table|td)\b[^>]*>", re.IGNORECASE)
_LONG_WORDS = 350  # about what a ranker reads of a document at once
_RARE = 0.5


def propose(mapping: IndexMapping, sources: Sources) -> dict[str, Any]:
    """Query, text, title, signals and analyzer, by the mapping and some documents.

    Without query, text and title where there is no field of text.
    """
    proposal: dict[str, Any] = {
        "signals": tuple(
            field.path
            for field in mapping.of_types(*NUMBERS_AND_DATES)
            if not field.nested and not re.search(r"(^|[_.])id$", field.path)
        )
    }
    prose = [field for field in mapping.of_types(*TEXT) if not _is_no_prose(field.path, sources)]
    fields = [
        field
        for field in prose or mapping.of_types("keyword", "wildcard")
        if field.path not in mapping.hidden
    ]
    if not fields:
        return proposal
    length = {field.path: _mean_length(field.path, sources) for field in fields}
    title = _title([field for field in fields if not field.nested], length)
    rest = [path for path in sorted(length, key=lambda path: -length[path]) if path != title]
    texts = [path for path in rest if length[path] or not sources][:_TEXTS]
    if not texts:
        texts, title = [title or rest[0]], ""
    searched = [field.path for field in fields if not field.nested] or [fields[0].path]
    return proposal | {
        "query": _multi_match(sorted(searched)),
        "text": ". ".join(f"{{{{{path}}}}}" for path in texts),
        "title": f"{{{{{title}}}}}" if title else "",
        "analyzer": _analyzer([field for field in fields if field.path in (title, *texts)]),
    }


def refuse_unknown_fields(
    settings: AttachedSettings, mapping: IndexMapping, sources: Sources
) -> None:
    """Raises IndexProblem for a field that neither the mapping nor any of the documents has."""
    for path in (*settings.read_fields, *settings.signals):
        if path not in mapping.fields and not any(values(source, path) for source in sources):
            known = sorted(p for p, field in mapping.fields.items() if not field.subfield)
            raise IndexProblem(
                f"{settings.name} has no field {path!r}, or this user may not read it: its fields "
                f"are {named(known)}. Check the name, or ask for the right to read the field"
            )
    own = mapping.fields.get(settings.id)
    if own is not None and own.type not in EXACT:
        raise IndexProblem(
            f"{settings.id} is of type {own.type}, by which no document can be asked for: choose "
            f"an id of type {' or '.join(EXACT[:1])}, or _id"
        )


def oddities(
    settings: AttachedSettings,
    mapping: IndexMapping,
    sources: Sources,
    documents: Sequence[Document],
) -> Iterator[str]:
    """What is unusual about the index, a sentence each."""
    if not mapping.whole:
        yield (
            "this user may not read the mapping: names and types of fields are known, analyzers "
            "are not"
        )
    if len(mapping.indices) > 1:
        yield (
            f"{settings.name} stands for {len(mapping.indices)} indices "
            f"({named(list(mapping.indices))}): a document must not have the same id in two"
        )
    if mapping.conflicts:
        yield f"fields of different types in these indices: {named(list(mapping.conflicts))}"
    if not settings.seen.documents:
        yield "it holds no document that this user may read"
    yield from _odd_query(settings, mapping)
    yield from _odd_documents(settings, sources, documents)


def _odd_query(settings: AttachedSettings, mapping: IndexMapping) -> Iterator[str]:
    template = settings.query_template()
    if isinstance(template, QueryTemplate):
        left_out = [part for part in template.ignored if part not in ("size", "from", "_source")]
        if left_out:
            yield f"parts of the query that change no ranking are not sent: {', '.join(left_out)}"
    if not template.by_score:
        yield "the query sorts by something else than the score: first-stage scores are 1/rank"
    searched = str(settings.query)
    nested = [field.path for field in mapping.of_types(*TEXT) if field.nested]
    unsearched = [path for path in nested if path not in searched]
    if settings.query is not None and unsearched:
        yield (
            f"texts in nested objects are not searched by this query: {named(unsearched)}; a "
            "`nested` clause would"
        )


def _odd_documents(
    settings: AttachedSettings, sources: Sources, documents: Sequence[Document]
) -> Iterator[str]:
    if not documents:
        return
    for path in settings.read_fields:
        held = sum(bool(values(source, path)) for source in sources)
        if held < _RARE * len(sources):
            yield f"{path} is empty in {len(sources) - held} of {len(sources)} documents looked at"
    repeated = len(documents) - len({document.id for document in documents})
    if repeated:
        yield (
            f"{repeated} of {len(documents)} documents looked at have the id of another one: of "
            "those that share an id, one is found and read"
        )
    empty = sum(not document.text for document in documents)
    if empty:
        yield f"{empty} of {len(documents)} documents looked at have no text"
    marked_up = sum(bool(_MARKUP.search(document.text)) for document in documents)
    if marked_up:
        yield f"{marked_up} of {len(documents)} texts hold HTML, which rankers read as words"
    words = sorted(len(document.text.split()) for document in documents)
    if words[len(words) // 2] > _LONG_WORDS:
        yield (
            f"texts are long ({words[len(words) // 2]:,} words in the middle): a ranker reads the "
            "beginning, or all in windows (secondlook warm --window)"
        )
    distinct = len({document.text for document in documents if document.text})
    if distinct < len(documents) - empty:
        yield f"{len(documents) - empty - distinct} of {len(documents)} texts repeat another one"


def _title(fields: Sequence[IndexField], length: Mapping[str, float]) -> str:
    """The field that is a title by its name, if its values are as short as titles."""
    for word in _TITLES:
        for field in fields:
            last = field.path.rpartition(".")[2].casefold()
            if (last == word or last.endswith(f"_{word}")) and length[field.path] <= (
                _TITLE_CHARACTERS
            ):
                return field.path
    return ""


def _multi_match(paths: Sequence[str]) -> dict[str, Any]:
    about = {"query": "{{query}}", "fields": list(paths), "tie_breaker": 0.3}
    return {"query": {"multi_match": about}}


def _analyzer(fields: Sequence[IndexField]) -> str:
    names = {field.analyzer for field in fields}
    (name,) = names if len(names) == 1 else ("none",)
    return name if name in ANALYZERS else "none"  # type: ignore[return-value]


def _mean_length(path: str, sources: Sources) -> float:
    found = [len(str(value)) for value in chain.from_iterable(values(s, path) for s in sources)]
    return sum(found) / len(found) if found else 0.0


def _is_no_prose(path: str, sources: Sources) -> bool:
    """Whether what it holds are links, codes or objects rather than sentences."""
    found = [str(value) for source in sources for value in values(source, path)]
    strange = sum(bool(_NO_PROSE.match(text)) and not _MARKUP.match(text) for text in found)
    return bool(found) and strange > len(found) / 2
