"""A search body of the user's own, with `{{query}}` where the words of a query go."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from secondlook.errors import UnknownName, WrongArgument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from secondlook.retrieve.search_options import SearchOptions

_WHOLE = r'"\{\{\s*(\w+)\s*\}\}"'
_INSIDE = r"\{\{\s*(\w+)\s*\}\}"
_PLACEHOLDER = re.compile(f"{_WHOLE}|{_INSIDE}")
_MUSTACHE = re.compile(r"\{\{\s*[#^/>!&{]")
_LEFT_OVER = re.compile(r'\{\{(?:[^"\\]|\\.)*?\}\}')
"""Within one string of JSON text."""

OURS = ("query", "filters", "size", "from")
"""Placeholders whose values come with every search."""
NOT_FOR_RANKING = (
    "aggs", "aggregations", "docvalue_fields", "explain", "fields", "from", "highlight", "profile",
    "script_fields", "seq_no_primary_term", "size", "_source", "stored_fields", "suggest",
    "track_total_hits", "version",
)  # fmt: skip
"""Parts of a search body that change no ranking: they are left out, or set by us."""


class QueryTemplate:
    """A search body with placeholders; values are put in as JSON, so that no text can change it.

    A string that is nothing but a placeholder becomes the value itself, of any type; inside a
    longer string the value becomes a part of it. Where the query has no `{{filters}}`, filters are
    put around it, which changes no score.
    """

    def __init__(self, body: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        _check(body)
        self.ignored = tuple(key for key in body if key in NOT_FOR_RANKING)
        """Parts of the body that are not sent."""
        self._body = {key: value for key, value in body.items() if key not in NOT_FOR_RANKING}
        self._text = _as_json(self._body)
        self.names = frozenset(_names(self._text))
        if "query" not in self.names:
            raise WrongArgument(
                'the query template has no "{{query}}": write it where the words of the query go, '
                'as in {"query": {"match": {"title": "{{query}}"}}}'
            )
        self._defaults = dict(defaults or {})
        self.refuse_unknown(self._defaults)
        self._pieces = _pieces(self._text)
        _refuse_left_over(self._pieces)
        self._filtered = self._with_filters()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Placeholders that a caller gives values for, or that have a default."""
        return tuple(sorted(self.names.difference(OURS)))

    @property
    def by_score(self) -> bool:
        """Whether hits are ordered by their score."""
        sort = self._body.get("sort", "_score")
        first = sort[0] if isinstance(sort, list) and sort else sort
        return first == "_score" or (isinstance(first, dict) and "_score" in first)

    @property
    def sort(self) -> list[Any]:
        """The order of the hits, as a list."""
        sort = self._body.get("sort", [{"_score": "desc"}])
        return sort if isinstance(sort, list) else [sort]

    def refuse_unknown(self, parameters: Mapping[str, Any]) -> None:
        """Raises UnknownName for a parameter that the template has no place for."""
        for name in parameters:
            if name not in self.parameters:
                raise UnknownName("parameter of the query template", name, self.parameters)

    def render(self, query: str, k: int, options: SearchOptions, **more: object) -> str:
        """The body for one search as JSON; `more` are keys that it gets beside its own."""
        body = self._rendered(query, k, options)
        return f"{body[:-1]}, {json.dumps({'size': k, 'track_total_hits': False, **more})[1:]}"

    def page(
        self, query: str, options: SearchOptions, page: Mapping[str, Any], **more: object
    ) -> dict[str, Any]:
        """The same for one page of many, whose keys go before the body's own."""
        body = json.loads(self._rendered(query, page["size"], options))
        return {**body, "track_total_hits": False, **more, **page}

    def _rendered(self, query: str, k: int, options: SearchOptions) -> str:
        self.refuse_unknown(options.parameters)
        values = {
            **self._defaults,
            **options.parameters,
            "query": query,
            "filters": list(options.filters),
            "size": k,
            "from": 0,
        }
        pieces = self._filtered if options.filters else self._pieces
        if pieces is None:
            raise WrongArgument(self._why_no_filters())
        return "".join(_filled(piece, values) for piece in pieces)

    def _with_filters(self) -> list[str | tuple[str, bool]] | None:
        """The pieces of a search with filters; None where some hits would not have to match them.

        What stands beside the query finds hits of its own, so that each needs the filters.
        """
        beside = {key: value for key, value in self._body.items() if key != "query"}
        beside_filtered = "filters" in _names(_as_json(beside))
        if "knn" in beside and not beside_filtered:
            return None
        if "query" not in self._body:
            return self._pieces if beside_filtered else None
        if "filters" in _names(_as_json(self._body["query"])):
            return self._pieces
        inner = {"bool": {"must": [self._body["query"]], "filter": "{{filters}}"}}
        return _pieces(_as_json({**self._body, "query": inner}))

    def _why_no_filters(self) -> str:
        if "query" in self._body:
            return (
                "the query template has a knn search beside its query, which filters around the "
                'query do not narrow: write "filter": "{{filters}}" into knn'
            )
        return (
            'the query template has no query to put filters around: write "{{filters}}" where '
            "they go"
        )


class StoredTemplate:
    """A search template that is stored on the cluster, by its id.

    It gets `query`, `size`, `from` and the caller's parameters, and itself says what becomes of
    them.
    """

    ignored = ()
    by_score = True
    parameters = ()

    def __init__(self, template_id: str, defaults: Mapping[str, Any] | None = None) -> None:
        self._id, self._defaults = template_id, dict(defaults or {})

    def render(self, query: str, k: int, options: SearchOptions, **_more: object) -> str:
        """What `_search/template` takes; nothing can be added to what it holds."""
        if options.filters:
            raise WrongArgument(
                f"the stored search template {self._id!r} takes parameters, not filters: give a "
                "value to the parameter that it filters by"
            )
        given = {**self._defaults, **options.parameters, "query": query, "size": k, "from": 0}
        return json.dumps({"id": self._id, "params": given})


def _check(body: Mapping[str, Any]) -> None:
    if _MUSTACHE.search(json.dumps(body)):
        raise WrongArgument(
            "the query template holds Mustache sections, which the cluster alone can fill in: "
            "store it there (PUT _scripts/ID) and attach it by its id"
        )
    if any(_names(key) for key in _keys(body)):
        raise WrongArgument("a placeholder of the query template stands for a value, not for a key")


def _refuse_left_over(pieces: list[str | tuple[str, bool]]) -> None:
    """Raises WrongArgument for braces that would go to the cluster as they are written."""
    for piece in pieces:
        if isinstance(piece, str) and (braces := _LEFT_OVER.search(piece)):
            raise WrongArgument(
                f"{braces[0]} in the query template is no placeholder: a name is made of letters, "
                "digits and underscores"
            )


def _as_json(value: object) -> str:
    """With letters as they are, so that names of placeholders are found in any language."""
    return json.dumps(value, ensure_ascii=False)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


def _names(text: str) -> list[str]:
    return [whole or inside for whole, inside in _PLACEHOLDER.findall(text)]


def _pieces(text: str) -> list[str | tuple[str, bool]]:
    """JSON text, and between it the names of placeholders, with whether each is a whole string."""
    pieces: list[str | tuple[str, bool]] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        pieces += [text[end : match.start()], (match[1] or match[2], match[1] is not None)]
        end = match.end()
    return [*pieces, text[end:]]


def _filled(piece: str | tuple[str, bool], values: Mapping[str, Any]) -> str:
    if isinstance(piece, str):
        return piece
    name, whole = piece
    if name not in values:
        raise WrongArgument(
            f"the query template needs a value for {name!r}: give it as a parameter, or attach the "
            "index with a default for it"
        )
    value = values[name]
    if whole:
        return json.dumps(value)
    if not isinstance(value, str | int | float):
        raise WrongArgument(
            f"{name!r} stands inside a string of the query template and takes a text or a number; "
            f'write "{{{{{name}}}}}" alone in its quotes for a list'
        )
    return json.dumps(value if isinstance(value, str) else json.dumps(value))[1:-1]
