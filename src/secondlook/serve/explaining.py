"""Explanations of the rankers that are served; attention only where torch runs them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from secondlook.explain import Stopped, explain, mark
from secondlook.explain.plain_words import PlainWordReader
from secondlook.explain.words import WordReader
from secondlook.score.remote_ranker import RemoteRanker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from secondlook.explain import Mark
    from secondlook.explain.marks import Reader
    from secondlook.score.open_ranker import AnyRanker
    from secondlook.types import Document, Query


class PairExplainer:
    """Says why a document scored as it did. Threads may share it."""

    def __init__(self, analyzer: Callable[[], str | None] = lambda: None) -> None:
        self._analyzer = analyzer
        """Which language words match by: that of the index, which may be replaced."""
        self._readers: WeakKeyDictionary[AnyRanker, dict[str | None, Reader]]
        self._readers = WeakKeyDictionary()
        self._lock = Lock()

    def explain(
        self,
        ranker: AnyRanker,
        query: Query,
        document: Document,
        should_stop: Callable[[], bool],
        until: float,
    ) -> dict[str, Any]:
        """An Explanation as JSON; raises Stopped when it is no longer wanted."""
        said = explain(
            query.text,
            document.text,
            ranker,
            title=document.title,
            query_type=query.type,
            should_stop=should_stop,
            until=until,
            analyzer=self._analyzer(),
        )
        return said.to_json()

    def mark(
        self,
        ranker: AnyRanker,
        query: str,
        texts: Sequence[str],
        should_stop: Callable[[], bool],
    ) -> tuple[list[Mark], list[list[Mark]]]:
        """The marks of the query and of each text; raises Stopped likewise."""
        with self._lock:  # making a reader copies the tokenizer
            readers, name = self._readers.setdefault(ranker, {}), self._analyzer()
            reader = readers.get(name)
            if reader is None:
                reader = (
                    PlainWordReader(name)
                    if isinstance(ranker, RemoteRanker)
                    else WordReader(ranker.tokenizer, ranker.settings.encode, name)
                )
                readers[name] = reader
        return mark(query, _until(texts, should_stop), reader)


def _until(texts: Sequence[str], should_stop: Callable[[], bool]) -> Iterator[str]:
    for text in texts:
        if should_stop():
            raise Stopped("nobody waits for the marks")
        yield text
