"""An engine that is a list: the smallest thing that keeps the Retriever's promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.analyze import DEFAULT
from secondlook.analyze import analyzer as analyzer_of
from secondlook.errors import MissingDocument
from secondlook.retrieve.contents import contents
from secondlook.retrieve.search_options import refuse_no_hits
from secondlook.types import Document, Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class MemoryIndex:
    """Ranks by the number of query terms a document holds. For tests and examples."""

    def __init__(self, documents: Iterable[Document], analyzer: str = DEFAULT) -> None:
        self._documents = {document.id: document for document in documents}
        self._analyzer = analyzer_of(analyzer)
        self._terms = {
            document.id: frozenset(self._analyzer.terms(contents(document)))
            for document in self._documents.values()
        }

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """Documents that share a term with the query."""
        refuse_no_hits(k)
        return [self._ranking(query).top(k) for query in queries]

    def _ranking(self, query: Query) -> Ranking:
        wanted = frozenset(self._analyzer.terms(query.text))
        shared = {doc_id: len(wanted & terms) for doc_id, terms in self._terms.items()}
        return Ranking.of(query.id, (Hit(d, float(count)) for d, count in shared.items() if count))

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The texts, in the order asked for."""
        missing = [doc_id for doc_id in doc_ids if doc_id not in self._documents]
        if missing:
            raise MissingDocument(missing, "the memory index")
        found = (self._documents[doc_id] for doc_id in doc_ids)
        return [Document(document.id, document.text, document.title) for document in found]
