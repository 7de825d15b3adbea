"""Examples in docstrings (`>>>`) become code blocks: in Markdown they would be quotations.

mkdocstrings loads this file as an extension of Griffe, which reads the code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from griffe import Extension

if TYPE_CHECKING:
    from griffe import Object

_PROMPT = re.compile(r"\s*>>>")
_DIRECTIVE = re.compile(r"\s*# doctest:.*$")


class ExamplesAsCode(Extension):
    """Fences around the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:  # noqa: ANN401 - Griffe's own
        """Called by Griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its examples, each up to the next empty line, as blocks of code."""
    lines, inside = [], False
    for line in text.splitlines():
        if not inside and _PROMPT.match(line):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(_DIRECTIVE.sub("", line) if inside else line)
    return "\n".join([*lines, "```"] if inside else lines)
