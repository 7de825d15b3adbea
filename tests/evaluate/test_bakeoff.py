"""The tests of a bake-off: all pairs, corrected together, and what is said of them."""

import numpy as np
import pytest

from secondlook.evaluate.bakeoff import Contestant, Cost, Speed, contest, shown_ms
from secondlook.evaluate.bakeoff_page import bakeoff_page
from secondlook.evaluate.significance import holm
from secondlook.types import Hit, Ranking

QUERIES = 40


def ranked(name, places, *, seconds=0.01, cost=None):
    """A run whose relevant document stands at these places, one for each query."""
    rankings = []
    for number, place in enumerate(places):
        ids = [f"other{n} of {number}" for n in range(9)]
        ids.insert(place - 1, f"good of {number}")
        hits = [Hit(doc_id, float(-at)) for at, doc_id in enumerate(ids)]
        rankings.append(Ranking.of(f"q{number}", hits))
    return Contestant(name, rankings, Speed((seconds, 2 * seconds, seconds)), Cost(cost))


def judged(contestants, measures=("RR@10",)):
    qrels = {f"q{n}": {f"good of {n}": 1, f"other0 of {n}": 0} for n in range(QUERIES)}
    return contest(qrels, contestants, measures, alpha=0.05, rng=np.random.default_rng(0), texts={})


@pytest.fixture(scope="module")
def found():
    draw = np.random.default_rng(1)
    good = draw.integers(1, 3, QUERIES)
    nearly = np.where(draw.random(QUERIES) < 0.1, 3 - good, good)
    return judged(
        [
            ranked("first stage", draw.integers(3, 9, QUERIES)),
            ranked("good", good, seconds=0.2, cost=2.0),
            ranked("nearly", nearly, seconds=0.1, cost=0.5),
            ranked("bad", draw.integers(5, 10, QUERIES)),
        ]
    )


def test_all_pairs_are_tested_and_corrected_together(found):
    assert found.tests == 6
    pairs = [
        (family.base, run.run, run.differences[0])
        for family in found.families
        for run in family.runs
    ]
    assert len({(base, run) for base, run, _ in pairs}) == 6
    raw = [difference.randomisation for _, _, difference in pairs]
    assert [difference.adjusted for _, _, difference in pairs] == pytest.approx(holm(raw))


def test_the_best_is_told_from_some_and_not_from_others(found):
    assert found.best.name in ("good", "nearly")
    other = "nearly" if found.best.name == "good" else "good"
    assert found.beaten() == ["first stage", "bad"]
    assert found.equals() == [other]
    assert f"not significantly better than {other}." in found.sentence()
    assert found.sentence().startswith(f"{found.best.name} is best (RR@10 ")
    told = "nearly is the cheapest (0.5 per 1,000) and the fastest (100 ms)."
    assert found.cheapest().endswith(told)


def test_rows_have_means_intervals_and_latency(found):
    first, good, *_ = found.rows
    assert (first.verdict, first.adjusted) == ("", None)
    assert good.verdict == "helps"
    assert good.low < good.measures["RR@10"] < good.high
    assert (good.median_ms, good.timed) == (200, 3)
    assert good.p95_ms == pytest.approx(380)


def test_latencies_below_a_millisecond_are_not_shown_as_nothing():
    assert [shown_ms(value) for value in (0.313, 9.5, 10.4, 2706.2)] == [
        "0.31",
        "9.5",
        "10",
        "2,706",
    ]


def test_the_signs_of_differences_go_with_their_order(found):
    tested, is_base = found.comparison("good", "first stage")
    assert not is_base
    assert tested.differences[0].delta > 0
    again, is_base = found.comparison("first stage", "good")
    assert is_base
    assert again == tested


def test_where_none_helps_that_is_the_answer():
    draw = np.random.default_rng(2)
    found = judged(
        [ranked("first stage", [1] * QUERIES), ranked("bad", draw.integers(5, 9, QUERIES))]
    )
    assert found.sentence().startswith("No re-ranker beats the first stage (RR@10 1.000)")
    assert found.rows[1].verdict == "hurts"
    assert found.cheapest() == ""


def test_few_queries_are_objected_to():
    qrels = {f"q{n}": {f"good of {n}": 1} for n in range(5)}
    runs = [ranked("first stage", [5] * 5), ranked("good", [1] * 5)]
    few = contest(qrels, runs, ["RR@10"], alpha=0.05, rng=np.random.default_rng(0), texts={})
    assert any("5" in doubt for doubt in few.doubts())


def boolean(name):
    """A run that gives all hits one score, so that document ids decide: the good ones come last."""
    rankings = [
        Ranking.of(one.query_id, [Hit(hit.doc_id, 1.0) for hit in one.hits])
        for one in ranked(name, [1] * QUERIES).rankings
    ]
    return Contestant(name, rankings, Speed(()), Cost(None))


@pytest.mark.parametrize("place", [0, 1])
def test_what_only_the_order_of_ties_decides_is_not_told(place):
    """Neither against the first stage nor between re-rankers."""
    draw = np.random.default_rng(4)
    runs = [ranked("first stage", [9] * QUERIES), ranked("best", draw.integers(3, 9, QUERIES))]
    runs.insert(place, boolean("boolean"))
    found = judged(runs)
    assert found.best.name == "best"
    assert found.comparison("best", "boolean")[0].differences[0].adjusted < 0.05
    assert found.beaten() == ["first stage"]
    assert found.equals() == ["boolean"]
    assert "not significantly better than boolean" in found.sentence()
    verdicts = {frozenset((p["base"], p["new"])): p["verdict"] for p in found.to_dict()["pairs"]}
    assert verdicts[frozenset(("best", "boolean"))] == "cannot tell"
    assert any(
        doubt.startswith("best against boolean: the verdict depends on the order of documents")
        for doubt in found.doubts()
    )
    assert "void)" in bakeoff_page(found, [], "")


def test_the_page_stands_alone_and_has_every_figure(found):
    page = bakeoff_page(found, [("machine", "a <fast> one")], "secondlook bakeoff …")
    assert page.startswith("<!doctype html>")
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/", "")
    assert "a &lt;fast&gt; one" in page
    for row in found.rows:
        assert f"{row.measures['RR@10']:.4f}" in page
    assert page.count("<svg") == 1
    assert "(p 1.000)" in page
    assert "secondlook bakeoff …" in page


def test_what_was_not_timed_is_said():
    draw = np.random.default_rng(3)
    cached = Contestant("cached", ranked("x", [1] * QUERIES).rankings, Speed(()), Cost(None))
    found = judged([ranked("first stage", draw.integers(3, 9, QUERIES)), cached])
    page = bakeoff_page(found, [], "")
    assert "not timed" in page
    assert found.to_dict()["rankers"][1]["median_ms"] is None
