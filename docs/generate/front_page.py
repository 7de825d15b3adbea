"""The two drawings of the front page: what happens to a query, and what re-ranking gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawing import AMBER, GREY, TEAL, Picture

if TYPE_CHECKING:
    from pathlib import Path

BM25, UNTRAINED, TUNED = "#90a4ae", "#26a69a", "#f57c00"
CHART = (  # data set on the chart, results page, how its row begins, columns in the order of SERIES
    ("TREC DL 2019", "first-stage", "TREC DL 2019", ("BM25", "ranker alone", "with BM25's score")),
    ("TREC DL 2020", "first-stage", "TREC DL 2020", ("BM25", "ranker alone", "with BM25's score")),
    ("InsuranceQA", "training", "InsuranceQA", ("BM25", "untrained ranker", "trained")),
    ("SciFact", "first-stage", "SciFact", ("BM25", "ranker alone", "with BM25's score")),
    ("NFCorpus", "first-stage", "NFCorpus", ("BM25", "ranker alone", "with BM25's score")),
    (
        "COVID-QA, articles",
        "first-stage",
        "COVID-QA, whole articles",
        ("BM25", "ranker alone", "with BM25's score"),
    ),
)
SERIES = (
    ("BM25", BM25),
    ("re-ranked, no training", UNTRAINED),
    ("tuned on judgments", TUNED),
)


def pipeline() -> Picture:
    """A query's way through both stages, and the way a re-ranker is made."""
    p = Picture(
        860, 300, "Search: BM25 finds candidates, BERT re-ranks them. Tuning: train, test, serve"
    )
    p.say(24, 30, "Search", kind="head")
    p.box(24, 50, 116, 64, "query", GREY)
    p.arrow(144, 82, 180, 82)
    p.box(
        184, 42, 236, 80, "first look\nBM25: bm25s, OpenSearch\nreads millions of passages", AMBER
    )
    p.arrow(424, 82, 496, 82)
    p.say(460, 70, "top 100", "middle", "small")
    p.box(
        500, 42, 236, 80, "second look\nBERT re-ranker on your CPUs\nreads query and passage", TEAL
    )
    p.arrow(740, 82, 776, 82)
    p.box(780, 50, 60, 64, "hits", GREY)

    p.say(24, 178, "Tune", kind="head")
    p.box(24, 196, 176, 80, "your queries with\njudgments or clicks", GREY)
    p.arrow(204, 236, 236, 236)
    p.box(240, 196, 180, 80, "fine-tune\nwithin a time limit", TEAL)
    p.arrow(424, 236, 456, 236)
    p.box(460, 196, 200, 80, "test: helps, hurts,\nor cannot tell", AMBER)
    p.arrow(664, 236, 736, 236)
    p.say(700, 226, "helps", "middle", "small")
    p.box(740, 196, 100, 80, "serve", TEAL)
    p.arrow(790, 192, 700, 126)
    return p


def gains(results: Path) -> Picture:
    """nDCG@10 of BM25 and of re-ranking, as the results pages have it."""
    left, scale, group = 164, 480, 66
    p = Picture(
        620,
        86 + group * len(CHART),
        "nDCG@10 of BM25, of an untrained re-ranker and of a tuned one",
    )
    for x, (name, colour) in zip((24, 164, 364), SERIES, strict=True):
        p.bar(x, 44, 14, 14, colour)
        p.say(x + 20, 56, name, kind="small")
    p.say(24, 28, "nDCG@10, higher is better", kind="head")
    for n, (name, page, begins, columns) in enumerate(CHART):
        top = 80 + group * n
        p.say(left - 12, top + 29, name, "end")
        cells = table_row(results / f"{page}.md", begins)
        values = [cells[column] for column in columns]
        shown = values if float(values[2]) != float(values[1]) else values[:2]
        for m, (value, (_, colour)) in enumerate(zip(shown, SERIES, strict=False)):
            y = top + 18 * m
            p.bar(left, y, scale * float(value), 15, colour)
            p.say(left + scale * float(value) + 7, y + 12, value, kind="small")
        if len(shown) < len(values):
            p.say(left, top + 48, "tuning adds nothing here", kind="small")
    return p


def table_row(page: Path, begins: str) -> dict[str, str]:
    """A row of a page's first table: the cells by the names of their columns, without bold."""
    lines = page.read_text(encoding="utf-8").replace("**", "").splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("|"))
    names, _, *rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in lines[first : lines.index("", first)]
    ]
    for row in rows:
        if row[0].startswith(begins):
            return dict(zip(names, row, strict=False))
    raise ValueError(f"the first table of {page.name} has no row that begins with {begins!r}")
