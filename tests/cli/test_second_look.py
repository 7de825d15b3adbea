"""Re-rank and calibrate, as a newcomer would call them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny
from command_line import check_a_kill
from command_line import in_process as secondlook
from secondlook import Document, Query, Ranker
from secondlook.data import read_run, write_qrels, write_run
from secondlook.rank.batches import batches, parts
from secondlook.types import Hit, Ranking

TEXTS = {
    f"d{number}": f"{word} {other} of the deep sea {number}"
    for number, (word, other) in enumerate(
        (word, other)
        for word in "cape fear river tide fish".split()
        for other in "bogue bog a".split()
    )
}
QUERIES = {"q1": "what is the tide", "q2": "who is cape fear", "q3": "where is the river"}


@pytest.fixture
def data(tmp_path):
    with (tmp_path / "corpus.jsonl").open("w") as out:
        for doc_id, text in TEXTS.items():
            out.write(json.dumps({"_id": doc_id, "text": text}) + "\n")
    with (tmp_path / "queries.jsonl").open("w") as out:
        for query_id, text in QUERIES.items():
            out.write(json.dumps({"_id": query_id, "text": text}) + "\n")
    hits = [Hit(doc_id, float(-number)) for number, doc_id in enumerate(TEXTS)]
    write_run(tmp_path / "first.trec", [Ranking.of(query_id, hits) for query_id in QUERIES])
    tiny.save(tiny.encoder(), tmp_path / "base")
    secondlook("warm", tmp_path / "base", "-o", tmp_path / "ranker")
    secondlook("index", tmp_path / "corpus.jsonl", tmp_path / "index")
    return tmp_path


def rerank(data, *more, run="first.trec", out="second.trec", fails=False):
    given = ["--index", data / "index", "--queries", data / "queries.jsonl"]
    given += ["--ranker", data / "ranker", "-o", data / out]
    return secondlook("rerank", data / run, *given, *more, fails=fails)


def test_every_hit_gets_the_rankers_score(data):
    said = rerank(data)
    assert "45 pairs" in said
    assert "no text cut short" in said
    ranker = Ranker.load(data / "ranker", device="cpu")
    for ranking in read_run(data / "second.trec"):
        query = Query("", QUERIES[ranking.query_id])
        pairs = [(query, Document("", TEXTS[hit.doc_id])) for hit in ranking.hits]
        assert [hit.score for hit in ranking.hits] == pytest.approx(ranker.score(pairs), abs=1e-5)
        assert len(pairs) == 15


def test_queries_that_were_cut_short_are_told(data):
    with (data / "queries.jsonl").open("w") as out:
        for query_id, text in QUERIES.items():
            long = text + " tide" * 80 * (query_id == min(QUERIES))
            out.write(json.dumps({"_id": query_id, "text": long}) + "\n")
    assert "queries cut short: 1" in rerank(data)


def test_only_the_best_of_the_first_look_are_seen(data):
    rerank(data, out="whole.trec")
    assert "6 pairs" in rerank(data, "--depth", "2")
    scores = {
        (r.query_id, hit.doc_id): hit.score for r in read_run(data / "whole.trec") for hit in r.hits
    }
    for ranking in read_run(data / "second.trec"):
        best, rest = ranking.hits[:2], ranking.hits[2:]
        assert {hit.doc_id for hit in best} == {"d0", "d1"}
        own = [scores[ranking.query_id, hit.doc_id] for hit in best]
        assert [hit.score for hit in best] == pytest.approx(own, abs=1e-5)
        assert [hit.doc_id for hit in rest] == list(TEXTS)[2:]  # as the first look had them
        singles = np.array([hit.score for hit in ranking.hits[1:]], np.float32)
        assert (np.diff(singles) < 0).all()


def test_raw_scores_are_only_of_what_was_scored(data):
    rerank(data, "--depth", "2", "--raw")
    made = {r.query_id: {hit.doc_id for hit in r.hits} for r in read_run(data / "second.trec")}
    assert made == {query_id: {"d0", "d1"} for query_id in QUERIES}


def test_a_shallow_re_ranking_is_not_charged_with_the_hits_it_did_not_see(data):
    rerank(data, "--depth", "2")
    write_qrels(data / "qrels.tsv", {query_id: {"d9": 1, "d0": 0} for query_id in QUERIES})
    runs = [data / name for name in ("first.trec", "second.trec")]
    said = json.loads(secondlook("eval", data / "qrels.tsv", *runs, "-m", "R@100", "--json"))
    assert [run["means"]["R@100"] for run in said["runs"]] == [1.0, 1.0]


@pytest.mark.slow  # tests/cli/test_interrupted.py kills it in CI
def test_killed_it_goes_on_to_the_same_run(data):
    given = ["--index", data / "index", "--queries", data / "queries.jsonl"]
    given += ["--ranker", data / "ranker"]  # each query is a batch
    check_a_kill(
        data / "second.trec", "secondlook.rank.batches.PAIRS", "rerank", data / "first.trec", *given
    )


@pytest.mark.slow  # likewise
def test_killed_at_a_depth_it_goes_on_to_the_same_run_with_all_hits(data):
    given = ["--index", data / "index", "--queries", data / "queries.jsonl", "--depth", "12"]
    given += ["--ranker", data / "ranker"]
    check_a_kill(
        data / "second.trec", "secondlook.rank.batches.PAIRS", "rerank", data / "first.trec", *given
    )
    assert {len(ranking.hits) for ranking in read_run(data / "second.trec")} == {len(TEXTS)}


def test_texts_that_were_cut_are_counted(data):
    with (data / "corpus.jsonl").open("a") as out:
        out.write(json.dumps({"_id": "long", "text": "the sea " * 500}) + "\n")
    secondlook("index", data / "corpus.jsonl", data / "index", "--replace")
    write_run(data / "long.trec", [Ranking.of("q1", [Hit("long", 1.0), Hit("d0", 0.5)])])
    assert "1 of 2 texts were longer" in rerank(data, run="long.trec")


def test_a_query_without_text_is_named_before_any_work(data):
    write_run(data / "other.trec", [Ranking.of("q9", [Hit("d0", 1.0)])])
    complaint = rerank(data, run="other.trec", fails=True)
    assert "'q9'" in complaint
    assert not (data / "second.trec").exists()


def test_search_shows_how_far_hits_moved(data):
    shown = secondlook("search", data / "index", "tide", "--ranker", data / "ranker", "-k", "3")
    assert "first stage" in shown
    assert "re-ranked" in shown
    hits = json.loads(
        secondlook("search", data / "index", "tide", "--ranker", data / "ranker", "--json")
    )
    assert sorted(hit["first_rank"] for hit in hits) == [1, 2, 3]
    assert [hit["rank"] for hit in hits] == [1, 2, 3]


def test_a_depth_without_a_re_ranker_is_refused(data):
    complaint = secondlook("search", data / "index", "cats", "--depth", 5, fails=True)
    assert "it needs --ranker" in " ".join(complaint.replace("│", " ").split())


def test_calibration_is_stored_and_changes_what_users_see_but_not_the_order(data):
    rerank(data)
    rng = np.random.default_rng(1)
    qrels = {
        r.query_id: {
            hit.doc_id: int(rng.random() < 1 - place / 15) for place, hit in enumerate(r.hits)
        }
        for r in read_run(data / "second.trec")
    }
    write_qrels(data / "qrels.tsv", qrels)
    given = ["--run", data / "second.trec", "--qrels", data / "qrels.tsv"]
    before = Ranker.load(data / "ranker", device="cpu").rank("the tide", list(TEXTS.values()))
    figures = json.loads(secondlook("calibrate", data / "ranker", *given, "--json"))
    assert figures["pairs"] == 45
    assert figures["source"] == "judgments"
    assert 0 <= figures["ece_after"] <= 1
    after = Ranker.load(data / "ranker", device="cpu").rank("the tide", list(TEXTS.values()))
    assert [hit["corpus_id"] for hit in after] == [hit["corpus_id"] for hit in before]
    assert all(0 < hit["score"] < 1 for hit in after)
    found = secondlook("search", data / "index", "tide", "--ranker", data / "ranker", "--json")
    assert all(0 < hit["score"] < 1 for hit in json.loads(found))
    rerank(data, out="again.trec")
    assert (data / "again.trec").read_bytes() == (data / "second.trec").read_bytes()


def test_too_few_judgments_change_nothing(data):
    rerank(data)
    write_qrels(data / "qrels.tsv", {"q1": {"d0": 1}})
    given = ["--run", data / "second.trec", "--qrels", data / "qrels.tsv"]
    assert "at least 10" in secondlook("calibrate", data / "ranker", *given, fails=True)
    assert Ranker.load(data / "ranker", device="cpu").scale.source == "reference pairs"


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 60))
def test_batches_hold_whole_rankings_and_parts_have_the_same_batches(sizes, at_once):
    rankings = [
        Ranking(str(number), tuple(Hit(str(at), -at) for at in range(size)))
        for number, size in enumerate(sizes)
    ]
    cut = list(batches(iter(rankings), at_once))
    assert [ranking for batch in cut for ranking in batch] == rankings
    pairs = [sum(len(ranking.hits) for ranking in batch) for batch in cut]
    assert all(count >= at_once for count in pairs[:-1])
    assert [
        batch for part in parts(iter(rankings), at_once) for batch in batches(part, at_once)
    ] == cut
    done = [ranking for batch in cut[:2] for ranking in batch]
    assert list(batches(rankings[len(done) :], at_once)) == cut[2:]  # a job that goes on
