"""Fusion, windows and the cascade, as a newcomer would call them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import tiny
from command_line import in_process as secondlook
from secondlook import Document, Query, Ranker
from secondlook.cli import app
from secondlook.data import read_run, write_qrels, write_run
from secondlook.model.checkpoint import open_checkpoint, write_settings
from secondlook.model.settings import FusionSettings, PlattCalibration
from secondlook.rank import second_look
from secondlook.types import Hit, Ranking

WORDS = "cape fear river tide fish bogue sea deep".split()
TEXTS = {
    f"d{number}": " ".join(WORDS[(number * step + step) % len(WORDS)] for step in range(1, 25))
    for number in range(8)
}
QUERIES = {"q1": "what is the tide", "q2": "who is cape fear", "q3": "where is the river"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuse")
    for name, texts in (("corpus", TEXTS), ("queries", QUERIES)):
        lines = [json.dumps({"_id": one, "text": text}) for one, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    hits = [Hit(doc_id, float(20 - number)) for number, doc_id in enumerate(TEXTS)]
    write_run(folder / "first.trec", [Ranking.of(query_id, hits) for query_id in QUERIES])
    tiny.save(tiny.encoder(), folder / "base")
    secondlook("warm", folder / "base", "-o", folder / "whole")
    secondlook("warm", folder / "base", "-o", folder / "windows", "--window", "8", "--stride", "4")
    secondlook("index", folder / "corpus.jsonl", folder / "index")
    return folder


@pytest.fixture
def data(made):
    """The rankers as they were, whatever a test stored in them."""
    kept = {name: (made / name / "secondlook.json").read_text() for name in ("whole", "windows")}
    yield made
    for name, text in kept.items():
        (made / name / "secondlook.json").write_text(text)


def rerank(data, *more, ranker="whole", out="second.trec", fails=False):
    given = ["--index", data / "index", "--queries", data / "queries.jsonl"]
    given += ["--ranker", data / ranker, "-o", data / out]
    return secondlook("rerank", data / "first.trec", *given, "--replace", *more, fails=fails)


def fuse(data, ranker, **fusion):
    settings = open_checkpoint(data / ranker).settings
    changed = settings.model_copy(update={"fusion": FusionSettings(**fusion)})
    write_settings(data / ranker, changed)


def rankings(path):
    return {ranking.query_id: ranking for ranking in read_run(path)}


@pytest.mark.parametrize("ranker", ["whole", "windows"])
def test_the_same_final_score_in_rerank_in_search_and_by_hand(data, ranker):
    fuse(data, ranker, weight=0.3, scale="z")
    rerank(data, ranker=ranker)
    loaded = Ranker.load(data / ranker, device="cpu")
    found = rankings(data / "second.trec")
    for query_id, first in rankings(data / "first.trec").items():
        query = Query("", QUERIES[query_id])
        scores = loaded.score([(query, Document("", TEXTS[hit.doc_id])) for hit in first.hits])
        by_hand = {hit.doc_id: hit.score for hit in second_look(first, scores, loaded.fusion).hits}
        assert {h.doc_id: h.score for h in found[query_id].hits} == pytest.approx(by_hand, abs=1e-5)
    hits = json.loads(
        secondlook("search", data / "index", "tide", "--ranker", data / ranker, "--json")
    )
    first = Ranking.of("search", [Hit(hit["id"], hit["first_score"]) for hit in hits])
    texts = [Document("", TEXTS[hit.doc_id]) for hit in first.hits]
    scores = loaded.score([(Query("", "tide"), text) for text in texts])
    by_hand = {hit.doc_id: hit.score for hit in second_look(first, scores, loaded.fusion).hits}
    assert {hit["id"]: hit["final_score"] for hit in hits} == pytest.approx(by_hand, abs=1e-5)
    own = dict(zip((hit.doc_id for hit in first.hits), scores.tolist(), strict=True))
    assert {hit["id"]: hit["raw_score"] for hit in hits} == pytest.approx(own, abs=1e-5)


def test_a_search_says_where_the_re_ranker_has_no_weight(data):
    asked = ["search", data / "index", "tide", "--ranker", data / "whole", "--json"]
    fuse(data, "whole", weight=1.0)
    done = CliRunner().invoke(app, list(map(str, asked)))
    assert [hit["first_rank"] for hit in json.loads(done.stdout)] == [1, 2, 3, 4]
    assert "whole leaves the order to the first stage" in done.stderr
    secondlook("fuse", "clear", data / "whole")  # as it advises
    assert "leaves the order" not in CliRunner().invoke(app, list(map(str, asked))).stderr


def test_raw_scores_are_neither_fused_nor_pooled(data):
    rerank(data)
    fuse(data, "whole", weight=0.9)
    rerank(data, "--raw", out="raw.trec")
    assert rankings(data / "raw.trec") == rankings(data / "second.trec")
    rerank(data, "--raw", ranker="windows", out="raw.trec")
    hits = rankings(data / "raw.trec")["q1"].hits
    assert {hit.doc_id for hit in hits} == {f"{one}#{n}" for one in TEXTS for n in range(5)}


def test_the_passage_to_show_is_the_best_window(data):
    hits = json.loads(
        secondlook("search", data / "index", "tide", "--ranker", data / "windows", "--json")
    )
    ranker = Ranker.load(data / "windows", device="cpu")
    for hit in hits:
        passage = hit["passage"]
        assert passage["text"] == hit["text"][passage["start"] : passage["end"]]
        assert len(passage["text"].split()) == 8
        alone = ranker.score([(Query("", "tide"), Document("", passage["text"]))])
        assert hit["raw_score"] == pytest.approx(alone[0], abs=1e-5), "pooling is max"
    shown = secondlook("search", data / "index", "tide", "--ranker", data / "windows")
    assert "re-ranked" in shown


def tune(data, ranker, *more):
    given = ["--first", data / "first.trec", "--raw", data / "raw.trec"]
    given += ["--qrels", data / "qrels.tsv", "--folds", "3", "-m", "RR@10", "--json"]
    return json.loads(secondlook("fuse", "tune", data / ranker, *given, *more))


def test_what_is_tuned_is_stored_and_cleared(data):
    rerank(data, "--raw", out="raw.trec")
    write_qrels(data / "qrels.tsv", {query_id: {"d0": 1} for query_id in QUERIES})
    before = (data / "whole" / "secondlook.json").read_text()
    found = tune(data, "whole", "--dry-run")
    assert (data / "whole" / "secondlook.json").read_text() == before
    assert tune(data, "whole", "--curve", data / "curve.svg") == found | {"stored": True}
    assert found["first"] == 1.0, "d0 is the first look's best"
    assert found["weight"] > 0
    stored = open_checkpoint(data / "whole").settings.fusion
    assert stored == FusionSettings(weight=found["weight"], scale=found["scale"])
    assert "<svg" in (data / "curve.svg").read_text()
    rerank(data)
    assert all(r.hits[0].doc_id == "d0" for r in read_run(data / "second.trec"))
    secondlook("fuse", "clear", data / "whole")
    assert (data / "whole" / "secondlook.json").read_text() == before


@pytest.mark.parametrize("option", ["--top", "--stride"])
def test_options_of_windows_need_a_window(data, option):
    before = (data / "whole" / "secondlook.json").read_text()
    words = ("fuse", "set", data / "whole", "--weight", "0.5", option, "1")
    assert "--window" in secondlook(*words, fails=True)
    assert (data / "whole" / "secondlook.json").read_text() == before
    assert "0.5 first-stage weight" in secondlook(*words, "--window", "8")


def test_judgments_of_other_queries_are_refused(data):
    rerank(data, "--raw", out="raw.trec")
    write_qrels(data / "qrels.tsv", {"another": {"d0": 1}})
    runs = {"--first": "first.trec", "--raw": "raw.trec", "--qrels": "qrels.tsv"}
    given = [one for name, file in runs.items() for one in (name, data / file)]
    said = secondlook("fuse", "tune", data / "whole", *given, fails=True)
    assert "give the judgments of its queries" in said
    files = [data / name for name in ("qrels.tsv", "first.trec", "raw.trec")]
    assert "none of the 1 judged queries" in secondlook("depth", *files, fails=True)


def test_another_pooling_makes_probabilities_void(data):
    settings = open_checkpoint(data / "windows").settings
    calibration = PlattCalibration(slope=1.0, intercept=0.0)
    write_settings(data / "windows", settings.model_copy(update={"calibration": calibration}))
    rerank(data, "--raw", ranker="windows", out="raw.trec")
    write_qrels(data / "qrels.tsv", {query_id: {"d7": 1} for query_id in QUERIES})
    found = tune(data, "windows")
    assert set(found["poolings"]) >= {"max", "first", "mean", "top 0.5, 0.5"}
    now = open_checkpoint(data / "windows").settings
    same = now.encode.windows == settings.encode.windows
    assert (now.calibration == calibration) == same


def test_a_cascade_shows_the_dear_ranker_what_the_cheap_one_keeps(data):
    rerank(data, ranker="windows", out="cheap.trec")
    kept = {q: {hit.doc_id for hit in r.hits[:3]} for q, r in rankings(data / "cheap.trec").items()}
    said = rerank(data, "--cascade", f"{data / 'windows'}:3")
    assert "24 pairs" in said
    assert "to keep 3 of each query" in said
    assert "9 pairs" in said
    found = rankings(data / "second.trec")
    assert {q: {hit.doc_id for hit in r.hits[:3]} for q, r in found.items()} == kept
    assert all({hit.doc_id for hit in r.hits} == TEXTS.keys() for r in found.values())
    whole = rerank(data, out="whole.trec")
    assert "24 pairs" in whole
    for query_id, ranking in rankings(data / "whole.trec").items():
        expected = [hit for hit in ranking.hits if hit.doc_id in kept[query_id]]
        assert [hit.doc_id for hit in found[query_id].hits[:3]] == [hit.doc_id for hit in expected]


@pytest.mark.parametrize("given", ["ranker", "ranker:", "ranker:0", ":5"])
def test_a_cascade_that_cannot_be_read_is_refused(data, given):
    assert "RANKER:KEEP" in rerank(data, "--cascade", given, fails=True)


def test_the_depth_curve_says_what_each_depth_costs(data):
    rerank(data)
    write_qrels(data / "qrels.tsv", {query_id: {"d5": 1} for query_id in QUERIES})
    given = [data / "qrels.tsv", data / "first.trec", data / "second.trec"]
    rows = json.loads(secondlook("depth", *given, "--rate", "4", "--json"))
    assert [row["depth"] for row in rows] == [0, 1, 2, 5, 8]
    assert [row["ms"] for row in rows] == [0, 250, 500, 1250, 2000]
    assert rows[-1]["ceiling"] == 1.0
    assert rows[3]["nDCG@10"] == rows[0]["nDCG@10"], "d5 is the sixth: not yet seen"
    assert "--rate" in secondlook("depth", *given, "--rate", "nan", fails=True)
    shown = secondlook("depth", *given, "--plot", data / "depth.svg")
    assert "pairs/query" in shown
    assert "<svg" in (data / "depth.svg").read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [(("--stride", "200"), "make it at most 100"), (("--top", "-1"), "needs weights above zero")],
)
def test_windows_that_cannot_be_are_refused_in_a_line(data, options, told):
    given = ("--weight", ".5", "--window", "100", *options)
    assert told in secondlook("fuse", "set", data / "whole", *given, fails=True)
