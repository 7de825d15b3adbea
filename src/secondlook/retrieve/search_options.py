"""What a search asks for beside its words: filters, parameters of the query template, routing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from secondlook.errors import WrongArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

T = TypeVar("T")

_COMPOUND = {"bool", "nested"}
_LEAVES = {
    "exists", "geo_bounding_box", "geo_distance", "ids", "match", "match_phrase", "prefix", "range",
    "term", "terms",
}  # fmt: skip
_BOOL = {"must", "filter", "should", "must_not", "minimum_should_match"}
_NESTED = {"path", "query", "ignore_unmapped"}


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What one search asks for beside its words."""

    filters: tuple[Mapping[str, Any], ...] = ()
    """Clauses of the engine's query language that every hit has to match."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values of the query template's other placeholders."""
    routing: str | None = None
    """Which shards to ask, for an index whose documents were routed."""

    @classmethod
    def of(
        cls,
        filters: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        routing: str | None = None,
    ) -> SearchOptions:
        """As users give them: a single filter may stand for a list of one."""
        clauses = [filters] if isinstance(filters, dict) else filters
        return cls(tuple(clauses or ()), dict(parameters or {}), routing)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self.filters or self.parameters or self.routing)

    def refuse_unsafe(self) -> None:
        """Raises WrongArgument for what a stranger must not send to the cluster.

        That is anything but plain conditions on fields: scripts, expensive patterns, look-ups in
        other indices; and parameters that are not values or lists of values.
        """
        for clause in self.filters:
            _refuse_unsafe(clause)
        for name, value in self.parameters.items():
            items = value if isinstance(value, list) else [value]
            if not all(isinstance(item, str | int | float | None) for item in items):
                raise WrongArgument(f"the parameter {name!r} takes a value or a list of values")


def read_options(
    filters: Iterable[str], parameters: Iterable[str], routing: str | None
) -> SearchOptions:
    """Options as a command line has them: JSON clauses, and parameters as NAME=VALUE."""
    clauses = []
    for clause in filters:
        try:
            clauses.append(json.loads(clause))
        except ValueError as error:
            raise WrongArgument(f"the filter {clause!r} is no JSON: {error}") from error
    return SearchOptions(tuple(clauses), read_parameters(parameters), routing)


def read_parameters(given: Iterable[str]) -> dict[str, Any]:
    """Of NAME=VALUE, where a value is JSON if it can be read as such, and a text otherwise."""
    values: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            raise WrongArgument(f"a parameter is written NAME=VALUE, not {item!r}")
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return values


@runtime_checkable
class SearchedWithOptions(Protocol):
    """An engine that takes filters, parameters and routing with a search."""

    def with_options(self, options: SearchOptions) -> Self:
        """The same index, searched with these."""
        ...


def searched_with(index: T, options: SearchOptions) -> T:
    """The index as these options narrow it; raises WrongArgument where its engine takes none."""
    if not options:
        return index
    if not isinstance(index, SearchedWithOptions):
        raise WrongArgument(
            "filters, parameters and routing are for attached indexes (`secondlook attach`); this "
            "index takes none"
        )
    return index.with_options(options)


def refuse_no_hits(k: int) -> None:
    """Raises WrongArgument for a search that asks for fewer hits than one."""
    if k < 1:
        raise WrongArgument(f"k is {k}: ask for 1 hit or more")


def _refuse_unsafe(clause: object) -> None:
    if not isinstance(clause, dict) or len(clause) != 1:
        raise WrongArgument('a filter is an object of one key, as {"term": {"brand": "acme"}}')
    ((kind, about),) = clause.items()
    if kind not in _COMPOUND | _LEAVES or not isinstance(about, dict):
        known = ", ".join(sorted(_COMPOUND | _LEAVES))
        raise WrongArgument(f"filters of this server are {known}; not {str(kind)[:40]!r}")
    if kind == "bool":
        _refuse_keys(kind, about, _BOOL)
        for part in _BOOL - {"minimum_should_match"}:
            inner = about.get(part, [])
            for one in inner if isinstance(inner, list) else [inner]:
                _refuse_unsafe(one)
    elif kind == "nested":
        _refuse_keys(kind, about, _NESTED)
        _refuse_unsafe(about.get("query"))
    elif kind == "terms" and any(isinstance(value, dict) for value in about.values()):
        raise WrongArgument("a `terms` filter of this server takes a list of values")


def _refuse_keys(kind: str, about: Mapping[str, Any], known: set[str]) -> None:
    if strange := set(about) - known:
        raise WrongArgument(f"a `{kind}` filter of this server has no {sorted(strange)[0][:40]!r}")
