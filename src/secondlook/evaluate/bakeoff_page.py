"""A comparison of re-rankers as one page, and as a table for the terminal."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from secondlook.evaluate.bakeoff import shown_ms
from secondlook.evaluate.plots import draw_tradeoff
from secondlook.web_page import table, whole_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.evaluate.bakeoff import Contest, Row

TITLE = "Which re-ranker is best on these queries?"


def bakeoff_page(found: Contest, facts: Sequence[tuple[str, str]], command: str) -> str:
    """The answer, the figures, the plot, all tests, and how to make it again.

    `facts` say what was measured, and where.
    """
    helped = found.best != found.rows[0] and found.rows[0].name in found.beaten()
    kind = "helps" if helped else "cannot-tell"
    said, _, more = found.sentence().partition("; ")
    doubts = "".join(f'<p class="warning">{escape(one)}.</p>' for one in found.doubts())
    cheapest = f"<p>{escape(found.cheapest())}</p>" if found.cheapest() else ""
    answer = (
        f'<div class="verdict {kind}"><b>{escape(said)}</b>'
        f"<p>{escape(_capital(more))}</p>{cheapest}"
        f'<p class="small">{found.against_first_stage.queries} judged queries, {found.tests} '
        "tests.</p></div>"
    )
    parts = [
        f"<h1>{TITLE}</h1>",
        answer,
        doubts,
        "<h2>The figures</h2>" + _figures(found),
        "<h2>Quality and latency</h2>" + _plot(found),
        "<h2>Every pair</h2>" + _pairs(found),
        "<h2>Against the first stage</h2>"
        + "".join(
            f"<p><b>{escape(name)}</b>: {escape(told)}.</p>" for name, told in found.sentences()
        ),
        "<h2>How it was measured</h2>"
        + table(["", ""], [list(fact) for fact in facts], names=2)
        + f"<h2>To make it again</h2><pre>{escape(command)}</pre>",
    ]
    return whole_page(TITLE, "\n".join(part for part in parts if part))


HEADER = ("verdict", "p (Holm)", "median ms", "95% below ms", "cost per 1,000")


def cells(row: Row, found: Contest) -> list[str]:
    """A line of the table, in the order of name, measures and HEADER."""
    return [
        row.name,
        *(f"{value:.4f}" for value in row.measures.values()),
        row.verdict or "first stage",
        "" if row.adjusted is None else f"{row.adjusted:.4f}",
        "not timed" if row.median_ms is None else shown_ms(row.median_ms),
        "" if row.p95_ms is None else shown_ms(row.p95_ms),
        "–" if row.cost_per_1000 is None else f"{row.cost_per_1000:.3g}",
    ]


def _figures(found: Contest) -> str:
    header = ["re-ranker", *found.rows[0].measures, *HEADER]
    notes = [f"{row.name}: {row.cost_basis}" for row in found.rows if row.cost_basis]
    told = (
        "The verdict is against the first stage, by Fisher's randomisation test with Holm's "
        f"correction over all {found.tests} tests on this page. Latency is that of re-ranking one "
        "search at a time, without retrieval; the first stage's is that of retrieval."
    )
    costs = f'<p class="small">Cost: {escape("; ".join(notes))}.</p>' if notes else ""
    body = [cells(row, found) for row in found.rows]
    return table(header, body) + f'<p class="small">{escape(told)}</p>{costs}'


def _plot(found: Contest) -> str:
    caption = (
        f"{found.measure} with its 95% interval over queries, and the median latency of "
        "re-ranking; the dashed line is the first stage. Intervals of two runs may overlap though "
        "their difference is significant: the tests below compare query by query."
    )
    return f"<figure>{draw_tradeoff(found)}<figcaption>{escape(caption)}</figcaption></figure>"


def _pairs(found: Contest) -> str:
    names = [row.name for row in found.rows]
    rows = []
    for one in names:
        line = [one]
        for other in names:
            if one == other:
                line.append("")
                continue
            tested, is_base = found.comparison(one, other)
            difference = tested.differences[0]
            delta = -difference.delta if is_base else difference.delta
            void = ", void" if tested.voided_by() else ""
            line.append(f"{delta:+.3f} (p {difference.adjusted:.3f}{void})")
        rows.append(line)
    told = (
        f"{found.measure} of the row minus that of the column, with the p-value after Holm's "
        "correction over all tests."
    )
    if any(run.voided_by() for family in found.families for run in family.runs):
        told += " Void: not to be relied on, for the reason given at the top."
    return table(["", *names], rows) + f'<p class="small">{escape(told)}</p>'


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
