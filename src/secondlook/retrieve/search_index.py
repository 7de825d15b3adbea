"""An index as programs hold it: any engine, asked by texts, Query objects or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.data.conversions import load_queries
from secondlook.data.run import Run
from secondlook.errors import SecondlookError
from secondlook.retrieve.index import signals_of
from secondlook.retrieve.search_options import SearchOptions, searched_with
from secondlook.retrieve.state_files import told_states

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self

    from secondlook.data.conversions import Queries
    from secondlook.retrieve import Index, IndexCard
    from secondlook.types import Document


class SearchIndex:
    """An open index: it retrieves candidates and holds the texts of the documents."""

    def __init__(self, engine: Index) -> None:
        self.engine = engine
        """What searches; its own methods are not part of the public interface."""

    @property
    def card(self) -> IndexCard:
        """Engine, settings, number of documents and the fingerprint of the corpus."""
        return self.engine.card

    def retrieve(
        self,
        queries: Queries,
        k: int = 100,
        *,
        filters: Sequence[Mapping[str, Any]] | None = None,
        parameters: Mapping[str, Any] | None = None,
        routing: str | None = None,
    ) -> Run:
        """The top `k` documents of each query, in the order of the queries.

        `queries` are texts, which get the ids 1, 2, …; Query objects; {query id: text}; a DataFrame
        with the columns `qid` and `query`; or a file of queries. One text is a list of one.
        An attached index takes `filters` in the cluster's query language, values of its query
        template's `parameters`, and a `routing` value.
        """
        if isinstance(queries, str) and not (queries.startswith("irds:") or _is_file(queries)):
            raise SecondlookError(
                f"there is no file of queries {queries!r}; to search for a text, give a list: "
                "retrieve([text])"
            )
        engine = searched_with(self.engine, SearchOptions.of(filters, parameters, routing))
        return Run(engine.retrieve(load_queries(queries), k), self.card.engine)

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in this order; raises MissingDocument."""
        return self.engine.fetch(doc_ids)

    def signals(self, doc_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Numbers and dates of these documents, by field, which an attached index may have."""
        return signals_of(self.engine, doc_ids)

    def verify(self) -> None:
        """Read all that is stored; raises IndexProblem where it is not what was indexed."""
        self.engine.verify()

    def close(self) -> None:
        """Release files and connections, where the engine holds any."""
        close = getattr(self.engine, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def summary(self) -> str:
        """How many documents, which engine and, where it has them, which vectors."""
        vectors = getattr(self.engine, "vectors", None)
        made = ""
        if vectors is not None:
            made = f", vectors by {vectors.card.ranker}{told_states(vectors.card)}"
        return f"{len(self):,} documents, {self.card.engine}{made}"

    def __len__(self) -> int:
        return self.card.documents

    def __repr__(self) -> str:
        return f"<SearchIndex: {len(self):,} documents, {self.card.engine}>"


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # a text too long to be a name
        return False
