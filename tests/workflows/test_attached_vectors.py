"""Vectors of an index that somebody else fills: kept in our folder alone."""

from __future__ import annotations

import pytest

import tiny
from command_line import in_process as secondlook
from secondlook.errors import IndexProblem, VanishedDocuments, WrongArgument
from secondlook.retrieve.engines import ENGINES
from secondlook.retrieve.folder import IndexCard, read_card, write_card
from secondlook.retrieve.hybrid import HybridIndex
from secondlook.retrieve.memory import MemoryIndex
from secondlook.retrieve.search_options import SearchOptions
from secondlook.types import Document, Query
from secondlook.workflows.index import build_index
from secondlook.workflows.open_index import open_index
from secondlook.workflows.vectors import add_vectors, stored_scorer_of
from secondlook.workflows.warm import warm

FILLED: list[Document] = []
"""What the owner of the index has put there so far."""


class Attached:
    """A foreign index: its documents come in the owner's order, and it can only be read."""

    parameters = ("brand",)
    options = SearchOptions()

    def __init__(self, card):
        self.card = card

    @classmethod
    def open(cls, folder):
        return cls(read_card(folder))

    def documents(self):
        return iter(list(FILLED))

    def retrieve(self, queries, k):
        return MemoryIndex(FILLED).retrieve(queries, k)

    def fetch(self, doc_ids):
        there = {document.id: document for document in FILLED if document.id in doc_ids}
        if gone := [doc_id for doc_id in doc_ids if doc_id not in there]:
            raise VanishedDocuments(gone, "the shop", there)
        return [there[doc_id] for doc_id in doc_ids]

    def signals(self, doc_ids):
        return [{"price": len(doc_id)} for doc_id in doc_ids]

    def verify(self):
        pass

    def with_options(self, options):
        narrowed = Attached(self.card)
        narrowed.options = options
        return narrowed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("secondlook.score.encoder_copy.can_export_encoder", lambda: False)
    monkeypatch.setitem(ENGINES._loaded, "attached", Attached)
    FILLED[:] = [Document(f"d{n}", " ".join("abcdefgh"[n : n + 3])) for n in range(6)]
    card = IndexCard(engine="attached", settings={}, documents=6, fingerprint="attached:1")
    write_card(tmp_path / "shop", card)
    tiny.save(tiny.encoder(), tmp_path / "base")
    return tmp_path / "shop"


def vectors_of(folder):
    index = open_index(folder, by="vectors").engine
    assert isinstance(index, HybridIndex)
    return index


def ids(index, text, k=10):
    return {hit.doc_id for hit in index.retrieve([Query("q", text)], k)[0].hits}


def test_its_documents_are_read_and_only_our_folder_is_written_to(folder):
    before = (folder / "index.json").read_bytes()
    build_index(folder, folder, vectors=folder.parent / "base")
    assert (folder / "index.json").read_bytes() == before
    assert {path.name for path in folder.iterdir()} >= {"index.json", "vectors"}
    assert ids(vectors_of(folder), "z") == {f"d{n}" for n in range(6)}  # BM25 finds none


def test_a_live_index_that_changed_meanwhile_is_encoded_by_ids(folder, monkeypatch):
    """Interrupted after two batches of two; then a document is put before all, and one twice."""
    from secondlook.score.vectors import VectorEncoder

    monkeypatch.setattr("secondlook.workflows.vectors._AT_ONCE", 2)
    encoded, real = [], VectorEncoder.documents

    def documents(self, some):
        if len(encoded) == 4:
            encoded.append("interrupted")
            raise KeyboardInterrupt
        encoded.extend(document.id for document in some)
        return real(self, some)

    monkeypatch.setattr(VectorEncoder, "documents", documents)
    with pytest.raises(KeyboardInterrupt):
        add_vectors(folder, folder, folder.parent / "base")
    FILLED[:] = [Document("new", "x y"), *FILLED[::-1], FILLED[0]]
    result = add_vectors(folder, folder, folder.parent / "base")
    assert encoded == ["d0", "d1", "d2", "d3", "interrupted", "new", "d5", "d4"]
    assert result.card.documents == 7
    assert ids(vectors_of(folder), "x") == {"new", *(f"d{n}" for n in range(6))}
    FILLED.append(Document("later", "p q"))
    assert add_vectors(folder, folder, folder.parent / "base").card.documents == 8


def test_vectors_leave_its_signals_as_they_were(folder):
    before = open_index(folder).signals(["d0", "d10"])
    assert before == [{"price": 2}, {"price": 3}]
    add_vectors(folder, folder, folder.parent / "base")
    assert open_index(folder).signals(["d0", "d10"]) == before


def test_a_search_shows_what_is_left_where_a_document_is_gone(folder):
    add_vectors(folder, folder, folder.parent / "base")
    tiny.save(tiny.classifier(), folder.parent / "classifier")
    del FILLED[3]  # its vector is still found
    given = ("search", folder, "a b c", "--by", "vectors", "-k", 5)
    shown = secondlook(*given, "--ranker", folder.parent / "classifier")
    assert "re-ranked" in shown
    assert "d3" not in shown


def test_an_index_without_documents_has_no_vectors(folder):
    FILLED.clear()
    with pytest.raises(IndexProblem, match="no documents to make vectors of"):
        add_vectors(folder, folder, folder.parent / "base")
    FILLED.append(Document("first", "a b"))
    assert add_vectors(folder, folder, folder.parent / "base").card.documents == 1


def test_another_corpus_is_refused(folder):
    with pytest.raises(WrongArgument, match="gives its own documents"):
        add_vectors(folder, folder.parent / "corpus.jsonl", folder.parent / "base")


def test_a_ray_job_over_documents_that_may_change_is_refused(folder):
    with pytest.raises(WrongArgument, match=r"may change.*leave out ray"):
        add_vectors(folder, folder, folder.parent / "base", ray="local")


def test_a_search_with_filters_goes_by_the_engine_alone(folder):
    add_vectors(folder, folder, folder.parent / "base")
    index = vectors_of(folder)
    assert index.parameters == ("brand",)
    filters = SearchOptions(filters=({"term": {"brand": "acme"}},))
    narrowed = index.with_options(filters)
    assert narrowed.engine.options == filters
    assert ids(narrowed, "z") == set()  # not by vectors, which know no brand


def test_documents_are_fetched_before_they_are_scored_by_vectors(folder):
    ranker = folder.parent / "ranker"
    warm(folder.parent / "base", ranker, separate_layers="all")
    add_vectors(folder, folder, ranker)
    index = vectors_of(folder)
    scorer = stored_scorer_of(index, ranker)
    assert scorer is not None
    assert scorer.reads_texts  # one that left the index since must not be ranked
