"""The text analyzers by name: what `index --language` takes and an index folder remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from secondlook.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFAULT = "english"

# Stems and stop words of Snowball's languages whose words are parted by spaces; OpenSearch has an
# analyzer of the same name for each.
_LANGUAGES = (
    "arabic armenian basque catalan danish dutch estonian finnish french german greek hungarian "
    "indonesian irish italian lithuanian norwegian portuguese romanian russian spanish swedish "
    "turkish"
).split()


class Analyzer(Protocol):
    """Makes index terms of a text: words that are to match get the same term."""

    opensearch: str | None
    """The analyzer of OpenSearch and Elasticsearch that comes nearest; None where none does."""

    def terms(self, text: str) -> list[str]:
        """The index terms of a text, in order, repeats included."""
        ...

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and term of every indexed word."""
        ...


ANALYZERS: Registry[Callable[[], Analyzer]] = Registry(
    "text analyzer",
    "secondlook.analyzers",
    {
        DEFAULT: "secondlook.analyze.words:english",
        "none": "secondlook.analyze.words:plain",
        "cjk": "secondlook.analyze.cjk:CjkAnalyzer",
        **{language: f"secondlook.analyze.languages:{language}" for language in _LANGUAGES},
    },
)
"""Each is a class, or a function without arguments, that gives an Analyzer."""


def analyzer(name: str = DEFAULT) -> Analyzer:
    """A new analyzer of this name; raises UnknownName with the nearest one."""
    return ANALYZERS[name]()
