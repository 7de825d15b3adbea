"""What of a foreign document a re-ranker reads: `"{{name}}. {{description}}"`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from secondlook.errors import WrongArgument

_TOKEN = re.compile(r"\{\{\s*([#/]?)\s*([^{}\s]+?)\s*\}\}")
_SEPARATORS = " \t\n.,;:|/-–—"
_BETWEEN = ", "  # the items of a list


@dataclass(frozen=True, slots=True)
class _Part:
    """A field, or with `inner` a list of objects, and the literal text before it."""

    before: str
    path: str
    inner: TextTemplate | None = None

    def text(self, source: object) -> str:
        found = values(source, self.path)
        if self.inner is None:
            return _BETWEEN.join(filter(None, map(_written, found)))
        return _BETWEEN.join(filter(None, map(self.inner.text, found)))


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """Fields of a document, and the text between them.

    A list becomes its items, comma-separated; `{{#attributes}}{{name}}: {{value}}{{/attributes}}`
    writes each object of a list. A field without a value takes the text before it away with it.
    """

    parts: tuple[_Part, ...]
    after: str = ""

    @classmethod
    def parse(cls, template: str) -> TextTemplate:
        """Raises WrongArgument for a template that names no field, or whose sections do not end."""
        parsed, _ = _parsed(template, 0, None)
        if not parsed.parts:
            raise WrongArgument(
                f"{template!r} names no field: write it like '{{{{name}}}}. {{{{description}}}}'"
            )
        return parsed

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields that it reads, with dots."""
        return tuple(
            path
            for part in self.parts
            for path in (
                [part.path]
                if part.inner is None
                else [f"{part.path}.{inner}" for inner in part.inner.paths]
            )
        )

    def text(self, source: object) -> str:
        """What a document says."""
        written, last = "", ""
        for part in self.parts:
            last = part.text(source)
            if last:
                first = part is self.parts[0]
                before = part.before if written or first else part.before.lstrip(_SEPARATORS)
                written += before + last
        return written + self.after if last else written


def _parsed(template: str, at: int, section: str | None) -> tuple[TextTemplate, int]:
    parts: list[_Part] = []
    begin = at
    while match := _TOKEN.search(template, at):
        before, at = template[begin : match.start()], match.end()
        kind, path = match.groups()
        if kind == "/":
            if path != section:
                raise WrongArgument(f"{{{{/{path}}}}} ends no section of {template!r}")
            return TextTemplate(tuple(parts), before), at
        inner = None
        if kind == "#":
            inner, at = _parsed(template, at, path)
        parts.append(_Part(before, path, inner))
        begin = at
    if section is not None:
        raise WrongArgument(f"the section {section!r} of {template!r} has no end")
    return TextTemplate(tuple(parts), template[begin:]), at


def values(source: object, path: str) -> list[Any]:
    """What a document has at a path, lists flattened; keys may themselves have dots."""
    if isinstance(source, list):
        return [value for item in source for value in values(item, path)]
    if not isinstance(source, dict):
        return []
    if path in source:
        return _flat(source[path])
    return [
        value
        for key, inner in source.items()
        if path.startswith(f"{key}.")
        for value in values(inner, path[len(key) + 1 :])
    ]


def _flat(value: object) -> list[Any]:
    if isinstance(value, list):
        return [item for inner in value for item in _flat(inner)]
    return [] if value is None else [value]


def _written(value: object) -> str:
    """A single value as text; an object has none."""
    if isinstance(value, str):
        return value.strip()
    return "" if isinstance(value, dict) else json.dumps(value)
