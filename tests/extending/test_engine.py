"""A search engine of another package: one file, one entry point."""

from __future__ import annotations

import json

import pytest

from command_line import in_process
from secondlook.data import write_corpus
from secondlook.errors import IndexProblem, MissingDocument
from secondlook.retrieve import open_index
from secondlook.types import Document, Query

TEXTS = [
    Document("cats", "Cats chase mice.", "On cats"),
    Document("dogs", "Dogs chase cats, and cats run."),
    Document("owls", "Owls hunt at night."),
]


@pytest.fixture
def folder(install, tmp_path):
    install("acme-search")
    write_corpus(tmp_path / "corpus.jsonl", TEXTS)
    said = in_process(
        "index", tmp_path / "corpus.jsonl", tmp_path / "my.index", "--engine", "sqlite"
    )
    assert "3 documents, sqlite" in said
    return tmp_path / "my.index"


def test_the_verbs_take_it_as_their_own(folder):
    assert json.loads((folder / "index.json").read_text())["engine"] == "sqlite"
    hits = json.loads(in_process("search", folder, "hunting cats", "--json"))
    assert {hit["id"] for hit in hits} == {"cats", "dogs", "owls"}
    assert hits[0]["text"].startswith("Owls")  # one of three holds "hunt"
    assert "as it was made: 3 documents, sqlite" in in_process("doctor", "--index", folder)


def test_a_program_opens_it_by_its_folder(folder):
    index = open_index(folder)
    (ranking,) = index.retrieve([Query("q", "CHASED")], 1)
    assert [hit.doc_id for hit in ranking.hits] == ["cats"]
    assert index.fetch(["owls", "cats"]) == [TEXTS[2], TEXTS[0]]
    assert index.stored_bytes() > 0
    with pytest.raises(MissingDocument):
        index.fetch(["unicorns"])


def test_doctor_tells_of_it(install):
    install("acme-search")
    engines = json.loads(in_process("doctor", "--json"))["engines"]
    assert engines["sqlite"]["usable"]
    assert engines["sqlite"]["note"].startswith("SQLite 3")


def test_without_the_package_the_folder_says_which_engine_is_missing(folder, monkeypatch):
    monkeypatch.undo()
    with pytest.raises(IndexProblem, match="no search engine 'sqlite'"):
        open_index(folder)
    said = in_process("index", folder.parent / "corpus.jsonl", "x", "--engine", "sqlit", fails=True)
    assert "no search engine 'sqlit'" in said
