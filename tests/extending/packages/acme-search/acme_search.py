"""A search engine, as another package adds it: SQLite's full-text search."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from secondlook.analyze import analyzer
from secondlook.data.fingerprint import Fingerprint
from secondlook.errors import IndexProblem, MissingDocument
from secondlook.recipe import Settings
from secondlook.retrieve.contents import contents
from secondlook.retrieve.engines import Health, known
from secondlook.retrieve.folder import IndexCard, read_card, write_card
from secondlook.types import Document, Hit, Query, Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class SqliteSettings(Settings):
    analyzer: str = "english"


class SqliteIndex:
    """BM25 of SQLite's FTS5, over the terms of the index's analyzer."""

    def __init__(self, folder: Path, card: IndexCard) -> None:
        self.card = card
        self._path = folder / "fts.sqlite"
        self._terms = analyzer(card.analyzer).terms

    @classmethod
    def options(cls, folder: Path, **given: Any) -> SqliteSettings:
        return SqliteSettings.model_validate(known(SqliteSettings, given))

    @classmethod
    def check(cls, url: str | None) -> Health:
        return Health(usable=True, note=f"SQLite {sqlite3.sqlite_version}")

    @classmethod
    def build(
        cls, folder: Path, documents: Iterable[Document], settings: SqliteSettings
    ) -> SqliteIndex:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "fts.sqlite").unlink(missing_ok=True)
        terms, fingerprint = analyzer(settings.analyzer).terms, Fingerprint()
        base = sqlite3.connect(folder / "fts.sqlite")
        base.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title UNINDEXED, "
                     "text UNINDEXED, terms)")  # fmt: skip
        for one in documents:
            fingerprint.add(one)
            row = one.id, one.title, one.text, " ".join(terms(contents(one)))
            base.execute("INSERT INTO docs VALUES (?, ?, ?, ?)", row)
        base.commit()
        base.close()
        card = IndexCard(
            engine="sqlite",
            settings=settings.model_dump(),
            documents=fingerprint.documents,
            fingerprint=fingerprint.digest(),
        )
        write_card(folder, card)
        return cls(folder, card)

    @classmethod
    def open(cls, folder: Path) -> SqliteIndex:
        return cls(folder, read_card(folder))

    def retrieve(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        return [self._ranking(query).top(k) for query in queries]

    def _ranking(self, query: Query) -> Ranking:
        words = " OR ".join(f'"{term}"' for term in self._terms(query.text))
        if not words:
            return Ranking(query.id, ())
        rows = self._rows("SELECT id, -bm25(docs) FROM docs WHERE docs MATCH ?", words)
        return Ranking.of(query.id, (Hit(doc_id, score) for doc_id, score in rows))

    def fetch(self, doc_ids: Sequence[str]) -> list[Document]:
        found = {row[0]: Document(*row) for row in self._rows("SELECT id, text, title FROM docs")}
        if missing := [doc_id for doc_id in doc_ids if doc_id not in found]:
            raise MissingDocument(missing, str(self._path))
        return [found[doc_id] for doc_id in doc_ids]

    def verify(self) -> None:
        if len(self._rows("SELECT id FROM docs")) != self.card.documents:
            raise IndexProblem(f"{self._path} lost documents; index the corpus anew")

    def stored_bytes(self) -> int:
        return self._path.stat().st_size

    def _rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        base = sqlite3.connect(self._path)
        try:
            return base.execute(statement, values).fetchall()
        finally:
            base.close()
