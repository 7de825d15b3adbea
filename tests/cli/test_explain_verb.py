import json

import pytest

import tiny
from command_line import in_process as said_by


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    return tiny.save(tiny.classifier(), tmp_path_factory.mktemp("rankers") / "tiny")


def test_a_person_a_machine_and_a_browser_are_told_why(ranker, tmp_path):
    page = tmp_path / "why.html"
    shown = said_by("explain", ranker, "bogue [sea]", "the deep bogue", "--html", page)
    assert "attention without STRM, as it scores" in shown
    assert "attention with STRM, for comparison" in shown
    assert "bog ##ue" in shown
    assert "<svg" in page.read_text("utf-8")


def test_json_holds_all_of_it(ranker):
    said = json.loads(said_by("explain", ranker, "bogue", "the deep bogue", "--json", "--layer", 1))
    assert [word["text"] for word in said["document_words"]] == ["the", "deep", "bogue"]
    assert said["attention"][0]["layer"] == 1
