"""Searching and explaining, as a program asks for them."""

import json
from shutil import copytree

import pytest

import tiny
from invented import DEEP_SEA
from secondlook.errors import IndexProblem, WrongArgument
from secondlook.retrieve.bm25 import Bm25Index, Bm25Settings
from secondlook.retrieve.search_options import SearchOptions
from secondlook.retrieve.snippet import snippet
from secondlook.types import Document
from secondlook.workflows.documents import documents_of
from secondlook.workflows.explain import explain
from secondlook.workflows.search import search


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    Bm25Index.build(folder / "index", DEEP_SEA, Bm25Settings())
    tiny.save(tiny.classifier(), folder / "ranker")
    return folder


def test_hits_know_where_they_were_before_re_ranking(folder, capsys):
    plain = search(str(folder / "index"), "cape river", k=3)
    assert plain.reranked is None
    assert plain.hits[0].document.id in {"d2", "d10"}
    assert set(plain.to_list()[0]) == {"rank", "id", "score", "title", "text"}
    assert "cape" in plain.snippet(plain.hits[0]).text
    both = search(folder / "index", "cape river", k=3, ranker=folder / "ranker", depth=5)
    assert both.first_stage == plain.hits
    assert [hit.rank for hit in both.hits] == [1, 2, 3]
    assert {hit.first_rank for hit in both.hits} <= set(range(1, 6))
    assert sorted(both.hits, key=lambda hit: -hit.final_score) == list(both.hits)
    assert (
        both.summary().splitlines()[0] == f"1. {both.hits[0].document.id}  {both.hits[0].score:.3f}"
    )
    assert capsys.readouterr() == ("", "")


def test_hits_below_the_depth_follow_as_they_stood(folder):
    found = search(folder / "index", "cape river sea", k=4, ranker=folder / "ranker", depth=2)
    assert {hit.first_rank for hit in found.hits[:2]} == {1, 2}
    assert all(hit.raw_score is not None for hit in found.hits[:2])
    below = found.hits[2:]
    assert [(hit.rank, hit.first_rank) for hit in below] == [(3, 3), (4, 4)]
    assert [hit.document for hit in below] == [hit.document for hit in found.first_stage[2:]]
    assert {(hit.score, hit.raw_score, hit.final_score) for hit in below} == {(None, None, None)}
    assert found.summary().splitlines()[3].endswith("not re-ranked")
    assert found.to_list()[3]["score"] is None


def test_nothing_found_is_an_empty_result(folder):
    assert search(folder / "index", "zebra").to_list() == []


def test_why_nothing_was_found_is_told(folder, monkeypatch):
    monkeypatch.setattr(
        "secondlook.retrieve.search_options.searched_with", lambda engine, _options: engine
    )
    filtered = SearchOptions.of({"term": {"year": 1900}})
    for words, options, why in (
        (" ", None, "it is empty"),
        ("zzz", None, "contains a word of it"),
        ("zzz", SearchOptions(), "contains a word of it"),
        ("zzz", filtered, "within the filters"),
    ):
        assert why in search(folder / "index", words, options=options).why_nothing()


@pytest.mark.parametrize("given", [{"depth": 0}, {"depth": -1}, {"k": 0}])
def test_nothing_is_no_depth(folder, given):
    with pytest.raises(WrongArgument, match="are 1 or more, not"):
        search(folder / "index", "tide", ranker=folder / "ranker", **given)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"k9": 1.0}, "no Bm25Settings setting 'k9'"),
        ({"k1": "high"}, "k1"),
        ({"analyzer": "klingon"}, "'klingon'"),
    ],
)
def test_an_index_folder_that_is_damaged_or_newer_is_named(folder, tmp_path, settings, said):
    index = copytree(folder / "index", tmp_path / "index")
    card = json.loads((index / "index.json").read_text())
    (index / "index.json").write_text(json.dumps(card | {"settings": settings}))
    with pytest.raises(IndexProblem, match=rf"(?s)index\.json cannot be read .*{said}.* anew"):
        search(index, "tide")


def test_a_snippet_knows_where_its_matches_are():
    text = "the sea is wide and deep and blue " * 5 + "a fish in the river " + "and so on " * 40
    shown = snippet(Document("d", text), "rivers of fish")
    assert shown.text.startswith("…")
    assert shown.text.endswith("…")
    assert [shown.text[start:end] for start, end in shown.matches] == ["fish", "river"]


@pytest.mark.parametrize("title", ["", "标题"])
def test_a_snippet_of_a_text_without_spaces_shows_the_match(title):
    text = "前" * 600 + "猫咪喜欢睡觉" + "后" * 600
    shown = snippet(Document("d", text, title), "猫咪喜欢睡觉", language="cjk")
    assert "前猫咪喜欢睡觉后" in shown.text
    assert shown.text[shown.matches[0][0] :].startswith("猫咪")


def test_an_explanation_writes_its_page(folder, tmp_path, capsys):
    capsys.readouterr()
    explanation = explain(
        str(folder / "ranker"),
        "what is cape",
        "d1",
        index=str(folder / "index"),
        html=str(tmp_path / "why.html"),
    )
    assert explanation.standing.hits == 9
    assert "<svg" in (tmp_path / "why.html").read_text("utf-8")
    assert capsys.readouterr() == ("", "")


def test_documents_come_from_an_index_too(folder):
    calls = []
    documents = documents_of(folder / "index", lambda *call: calls.append(call))
    assert list(documents) == DEEP_SEA
    assert calls[-1] == ("reading", len(DEEP_SEA), None)
