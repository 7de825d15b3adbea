import json

import pytest

import tiny
from command_line import in_process as said_by
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.settings import FusionSettings


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


def test_with_an_index_each_looks_share_of_the_final_score_is_told(tmp_path):
    corpus, index = tmp_path / "corpus.jsonl", tmp_path / "index"
    texts = {"d1": "the deep bogue", "d2": "bogue sea sea", "d3": "the sea"}
    corpus.write_text(
        "".join(json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in texts.items())
    )
    said_by("index", corpus, index)
    ranker = tiny.save(tiny.classifier(), tmp_path / "tiny")
    alone = json.loads(said_by("explain", ranker, "bogue", "d1", "--index", index, "--json"))
    assert alone["standing"]["parts"] == {"second look": pytest.approx(alone["score"], abs=1e-5)}
    checkpoint = open_checkpoint(ranker)
    fusion = FusionSettings(weight=0.3, scale="min-max")
    write_settings(ranker, checkpoint.settings.model_copy(update={"fusion": fusion}))
    fused = json.loads(said_by("explain", ranker, "bogue", "d1", "--index", index, "--json"))
    place = fused["standing"]
    assert place["hits"] == 2
    assert sum(place["parts"].values()) == pytest.approx(place["score"])
    assert place["parts"]["first look"] == pytest.approx(0.3 if place["first_rank"] == 1 else 0.0)
    shown = said_by("explain", ranker, "bogue", "d1", "--index", index)
    assert "in the first stage" in shown


def test_a_document_that_the_first_look_misses_is_said_to_be_unseen(ranker, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "d1", "text": "the deep sea"}\n')
    said_by("index", corpus, tmp_path / "index")
    said = said_by("explain", ranker, "bogue", "d1", "--index", tmp_path / "index", fails=True)
    assert "greater depth" in said
