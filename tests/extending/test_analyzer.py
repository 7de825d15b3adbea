"""Texts of another language: indexed, searched and highlighted by one analyzer, ours or added."""

from __future__ import annotations

import json

import acme_german
import pytest

import tiny
from command_line import in_process
from secondlook.analyze import ANALYZERS
from secondlook.data import write_corpus
from secondlook.encode.settings import EncodeSettings
from secondlook.explain import mark
from secondlook.explain.words import WordReader
from secondlook.retrieve import open_index
from secondlook.types import Document, Query

GERMAN = [
    Document("wohnen", "Die alten Häuser am Fluss wurden im letzten Jahr verkauft.", "Wohnen"),
    Document("garten", "Im Sommer blühen die Rosen, und die Kinder spielen im Garten."),
    Document("schloss", "Der Schlüssel passt nicht: Die Haustür bleibt verschlossen."),
    Document("kochen", "Eine Suppe aus Kürbis und Ingwer wärmt an kalten Tagen."),
]


@pytest.fixture
def indexed(tmp_path):
    write_corpus(tmp_path / "corpus.jsonl", GERMAN)

    def index(language):
        folder = tmp_path / f"{language}.index"
        in_process("index", tmp_path / "corpus.jsonl", folder, "--language", language)
        return folder

    return index


def found(folder, *queries):
    rankings = open_index(folder).retrieve([Query(text, text) for text in queries], 5)
    return [[hit.doc_id for hit in ranking.hits] for ranking in rankings]


def highlighted(folder, query, monkeypatch):
    """The words that the search verb shows in bold."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    shown = in_process("search", folder, query)
    parts = shown.split("\x1b[1;33m")[1:]
    return [part.split("\x1b[")[0] for part in parts]


def test_german_is_found_by_its_stems_and_not_by_its_stop_words(indexed):
    folder = indexed("german")
    assert json.loads((folder / "index.json").read_text())["settings"]["analyzer"] == "german"
    assert found(folder, "ein altes Haus", "spielendes Kind", "die und der", "kalter Tag") == [
        ["wohnen"],
        ["garten"],
        [],
        ["kochen"],
    ]
    english = indexed("english")
    assert found(english, "altes Haus") == [[]]
    assert len(found(english, "die und der")[0]) > 1


def test_what_was_matched_is_highlighted(indexed, monkeypatch):
    words = highlighted(indexed("german"), "das alte Haus", monkeypatch)
    assert words == ["alten", "Häuser"]


def test_a_ranker_s_page_marks_words_by_the_language_of_the_index():
    german = WordReader(tiny.tokenizer(), EncodeSettings(), "german")
    _, [marks] = mark("das alte Haus", [GERMAN[0].text], german)
    text = GERMAN[0].text
    assert [text[one.start : one.end] for one in marks if one.matched] == ["alten", "Häuser"]


def test_an_analyzer_of_another_package_is_chosen_the_same_way(indexed, monkeypatch):
    ANALYZERS.add("german-compounds", acme_german.german_compounds)
    folder = indexed("german-compounds")
    assert found(folder, "Tür", "Gartentür") == [["schloss"], ["schloss"]]
    assert found(indexed("german"), "Tür") == [[]]
    assert highlighted(folder, "Tür", monkeypatch) == ["Haustür"]


def test_an_unknown_language_is_refused_with_the_nearest(indexed, tmp_path):
    write_corpus(tmp_path / "c.jsonl", GERMAN)
    said = in_process(
        "index", tmp_path / "c.jsonl", tmp_path / "x", "--language", "germn", fails=True
    )
    assert "no text analyzer 'germn'; did you mean 'german'?" in said
    assert not (tmp_path / "x").exists()
