"""What a foreign index holds: its fields, the indices behind its name, and what has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from secondlook.recipe import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TEXT = ("text", "match_only_text", "annotated_text", "search_as_you_type")
NUMBERS_AND_DATES = (
    "byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double",
    "scaled_float", "rank_feature", "date", "date_nanos",
)  # fmt: skip
EXACT = ("keyword", "constant_keyword", "byte", "short", "integer", "long", "unsigned_long")
"""Types of fields that can hold an id."""
_NAMED = 5  # fields in a message


@dataclass(frozen=True, slots=True)
class IndexField:
    """A field of the mapping."""

    path: str
    type: str
    analyzer: str | None = None
    nested: bool = False
    """Whether it is in objects that only a `nested` query searches."""
    subfield: bool = False
    """Whether it is another way to index a field, which `_source` does not have."""


@dataclass(frozen=True, slots=True)
class IndexMapping:
    """The fields of all indices behind a name."""

    indices: tuple[str, ...]
    fields: Mapping[str, IndexField]
    conflicts: tuple[str, ...] = ()
    """Fields that have different types in these indices."""
    has_source: bool = True
    """Whether documents are stored as they were sent; without it nobody can read their texts."""
    whole: bool = True
    """Whether the user may read the mapping itself, not only names and types."""
    hidden: tuple[str, ...] = field(default=())
    """Fields that `_source` leaves out."""

    def of_types(self, *types: str) -> list[IndexField]:
        """The fields of these types that `_source` has."""
        return [one for one in self.fields.values() if one.type in types and not one.subfield]

    @classmethod
    def of_mapping(cls, answer: Mapping[str, Any]) -> IndexMapping:
        """Of what `GET NAME/_mapping` says."""
        fields: dict[str, IndexField] = {}
        conflicts: dict[str, None] = {}
        has_source, hidden = True, dict[str, None]()
        for index in answer.values():
            mapping = index.get("mappings", {})
            source = mapping.get("_source", {})
            has_source &= source.get("enabled", True) is not False
            hidden |= dict.fromkeys(source.get("excludes", ()))
            for found in _fields(mapping.get("properties", {}), "", nested=False):
                before = fields.setdefault(found.path, found)
                if before.type != found.type:
                    conflicts[found.path] = None
        return cls(
            tuple(sorted(answer)), fields, tuple(conflicts), has_source, hidden=tuple(hidden)
        )

    @classmethod
    def of_capabilities(cls, answer: Mapping[str, Any]) -> IndexMapping:
        """Of what `GET NAME/_field_caps` says, for users who may not read the mapping."""
        types = {
            path: next(iter(kinds))
            for path, kinds in answer["fields"].items()
            if not path.startswith("_")
        }

        def ancestors(path: str) -> list[str]:
            parts = path.split(".")
            kinds = (types.get(".".join(parts[:end])) for end in range(1, len(parts)))
            return [kind for kind in kinds if kind]

        fields = {
            path: IndexField(
                path,
                kind,
                nested="nested" in ancestors(path),
                subfield=any(above not in ("object", "nested") for above in ancestors(path)),
            )
            for path, kind in types.items()
            if kind not in ("object", "nested")
        }
        conflicts = [path for path, kinds in answer["fields"].items() if len(kinds) > 1]
        indices = answer.get("indices", ())
        indices = [indices] if isinstance(indices, str) else indices
        return cls(tuple(sorted(indices)), fields, tuple(conflicts), whole=False)


def _fields(properties: Mapping[str, Any], prefix: str, *, nested: bool) -> Iterator[IndexField]:
    for name, about in properties.items():
        path, kind = prefix + name, about.get("type", "object")
        if "properties" in about:
            inside = nested or kind == "nested"
            yield from _fields(about["properties"], f"{path}.", nested=inside)
        elif kind not in ("object", "nested"):
            yield IndexField(path, kind, about.get("analyzer"), nested, kind == "alias")
            for sub, way in about.get("fields", {}).items():
                way_kind, analyzer = way.get("type", ""), way.get("analyzer")
                yield IndexField(f"{path}.{sub}", way_kind, analyzer, nested, subfield=True)


class IndexState(Settings):
    """What is remembered of an index, to notice that it has changed."""

    documents: int
    indices: tuple[str, ...]
    fields: dict[str, str]
    """Field → type."""

    @classmethod
    def of(cls, mapping: IndexMapping, documents: int) -> IndexState:
        """As it is now."""
        types = {path: one.type for path, one in sorted(mapping.fields.items())}
        return cls(documents=documents, indices=mapping.indices, fields=types)

    def changes(self, now: IndexState) -> list[str]:
        """What is different now, a phrase each; none where nothing is."""
        found = []
        if now.documents != self.documents:
            found.append(f"{now.documents:,} documents, before {self.documents:,}")
        if now.indices != self.indices:
            after, before = ", ".join(now.indices), ", ".join(self.indices)
            found.append(f"it stands for {after or 'no index'}, before for {before}")
        for verb, paths in (
            ("new fields", now.fields.keys() - self.fields.keys()),
            (
                "fields that are gone, or hidden from this user",
                self.fields.keys() - now.fields.keys(),
            ),
            (
                "fields of another type",
                {p for p, kind in now.fields.items() if self.fields.get(p, kind) != kind},
            ),
        ):
            if paths:
                found.append(f"{verb}: {named(sorted(paths))}")
        return found


def named(paths: list[str]) -> str:
    """Some field names, in a message."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
