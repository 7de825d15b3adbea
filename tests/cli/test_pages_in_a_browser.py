"""The pages as a browser shows them: nothing is asked for, and nothing hangs over the edge."""

from functools import partial

import pytest

import tiny
from command_line import secondlook

pytestmark = pytest.mark.real


def report(folder):
    queries = [f"q{number}" for number in range(30)]
    (folder / "qrels.txt").write_text("".join(f"{q} 0 a 1\n{q} 0 b 0\n" for q in queries))
    for name, order in (("new", "ab"), ("base", "ba")):
        lines = [f"{q} Q0 {d} {at} {9 - at} t\n" for q in queries for at, d in enumerate(order)]
        (folder / f"{name}.trec").write_text("".join(lines))
    (folder / "queries.tsv").write_text("".join(f"{q}\twhere is {q}\n" for q in queries))
    (folder / "my.toml").write_text(
        'qrels = ["qrels.txt"]\nqueries = ["queries.tsv"]\nbase = ["base.trec"]\n'
        'new = ["new.trec"]\nmeasures = ["RR@10", "nDCG@10"]\n'
    )
    secondlook("report", folder / "my.toml", "-o", folder / "page.html")


def explanation(folder):
    ranker = tiny.save(tiny.classifier(), folder / "ranker")
    text = "the deep sea is bogus. " * 8
    secondlook("explain", ranker, "where is bogue", text, "--html", folder / "page.html")


@pytest.mark.parametrize("make", [report, explanation], ids=["report", "explanation"])
def test_a_page_needs_nothing_else_and_fits_wide_and_narrow_screens(make, browser, tmp_path):
    make(tmp_path)
    asked, complaints = [], []
    for width in (1280, 390):
        tab = browser.new_page(viewport={"width": width, "height": 800})
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", partial(complaints.append))
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        for figure in tab.locator("svg").all():
            box = figure.bounding_box()
            assert box["width"] > 100
            assert box["x"] + box["width"] <= width
    assert asked == [(tmp_path / "page.html").as_uri()] * 2
    assert complaints == []
