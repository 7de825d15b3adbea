"""One page that says whether a change helps, where, and how sure that is."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from secondlook.evaluate.plots import draw_breakdown, draw_calibration, draw_deltas, draw_depth
from secondlook.evaluate.verdict import figure_rows, sentence, warnings
from secondlook.web_page import table, whole_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.evaluate.breakdown import Breakdown
    from secondlook.evaluate.calibration import Reliability
    from secondlook.evaluate.comparison import Comparison, Comparisons, Difference
    from secondlook.evaluate.depth import Depth
    from secondlook.types import Document, Qrels, Query, Ranking

SHOWN_HITS = 5
EXTREMES = 10
_SNIPPET = 110  # characters
_EXPLORED = (
    "These groups were looked at after the fact, and their intervals are not corrected for that: "
    "they are where to look next, not proof."
)


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit as the report shows it."""

    doc_id: str
    grade: int | None
    """None if no one has judged it."""
    text: str


@dataclass(frozen=True, slots=True)
class Story:
    """One query and what became of it."""

    query: str
    base: float
    new: float
    base_hits: tuple[ShownHit, ...]
    new_hits: tuple[ShownHit, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All that stands in the page; parts that are empty are left out."""

    title: str
    found: Comparisons
    """Of one new run."""
    breakdowns: tuple[Breakdown, ...]
    depth: tuple[Depth, ...]
    stories: tuple[Story, ...]
    """Of all queries, most helped first."""
    calibrated: Reliability | None = None
    no_calibration: str = ""
    """Why it is not known."""
    curve: bytes | None = None
    """The training curves, a PNG."""
    lineage: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """The base, then the phases of training: name and figures."""
    dropped: tuple[Mapping[str, Any], ...] = ()
    """Labels that noise reduction took out, highest score first."""
    dropped_figures: Mapping[str, float] | None = None
    commands: tuple[str, ...] = ()
    gain: str = ""
    """What tuning itself brought, beside the verdict against the first stage."""


def shown_documents(
    qrels: Qrels, base: Sequence[Ranking], new: Sequence[Ranking], relevant_from: int
) -> set[str]:
    """The documents whose texts the page has a use for."""
    relevant = {
        doc_id
        for grades in qrels.values()
        for doc_id, grade in grades.items()
        if grade >= relevant_from
    }
    shown = {hit.doc_id for run in (base, new) for r in run for hit in r.hits[:SHOWN_HITS]}
    return relevant | shown


def stories(
    first: Difference,
    qrels: Qrels,
    queries: Sequence[Query],
    base: Sequence[Ranking],
    new: Sequence[Ranking],
    known: Mapping[str, Document],
) -> tuple[Story, ...]:
    """What became of each query by the first measure, most helped first."""
    texts = {query.id: query.text for query in queries}
    hits_of = [{ranking.query_id: ranking.hits for ranking in run} for run in (base, new)]

    def hits(run: int, query: str) -> tuple[ShownHit, ...]:
        return tuple(
            ShownHit(
                hit.doc_id,
                qrels[query].get(hit.doc_id),
                known[hit.doc_id].text if hit.doc_id in known else "",
            )
            for hit in hits_of[run].get(query, ())[:SHOWN_HITS]
        )

    deltas = first.deltas  # made anew at each access
    ordered = sorted(deltas, key=deltas.__getitem__, reverse=True)
    return tuple(
        Story(texts.get(query, query), *first.values[query], hits(0, query), hits(1, query))
        for query in ordered
    )


def report_page(report: Report) -> str:
    """The report: verdict first, then the plots, the queries and how to make it again."""
    run = report.found.runs[0]
    first = run.differences[0]
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        _verdict(report, run),
        "<h2>The figures</h2>" + _figures_table(run, report.found),
        "<h2>Query by query</h2>"
        + _figure(draw_deltas(first), f"Each bar is a query: {first.measure}, new minus base."),
        _where(report, first),
        _trust(report),
        _stories("Most helped", report.stories[:EXTREMES], gained=True),
        _stories("Most hurt", tuple(reversed(report.stories[-EXTREMES:])), gained=False),
        _dropped(report),
        _made(report),
    ]
    return whole_page(report.title, "\n".join(part for part in parts if part))


def _verdict(report: Report, run: Comparison) -> str:
    said = sentence(run, report.found)
    word, _, reason = said.partition(": ")
    kind = run.verdict.replace(" ", "-")
    doubts = [*(one.sentence for one in run.objections), *warnings(report.found)]
    gain = f"<p>{escape(report.gain[0].upper() + report.gain[1:])}.</p>" if report.gain else ""
    beware = "".join(f'<p class="warning">{escape(one)}.</p>' for one in doubts)
    copied = f"{run.queries} different of " if run.queries < report.found.queries else ""
    return (
        f'<div class="verdict {kind}"><b>{escape(word.capitalize())}</b><p>{escape(reason)}.</p>'
        f'<p class="small">{escape(run.run)} against {escape(report.found.base)}, '
        f"{copied}{report.found.queries} judged queries.</p></div>{gain}{beware}"
    )


def _figures_table(run: Comparison, found: Comparisons) -> str:
    shares = (
        f" Judged are {run.judged_share:.0%} of the new run's top 10, {found.judged_share:.0%} of "
        "the base's."
    )
    told = (
        "The interval is a BCa bootstrap over queries. The verdict goes by the randomisation test "
        "after Holm's correction for all measures and runs compared."
        f"{'' if found.only_relevant else shares}"
    )
    header = ["", *(one.measure for one in run.differences)]
    lines = [[name, *cells] for name, cells in figure_rows(run, found)]
    return table(header, lines) + f'<p class="small">{told}</p>'


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _where(report: Report, first: Difference) -> str:
    figures = [
        _figure(draw_breakdown(one, first.measure), f"By {one.name}.") for one in report.breakdowns
    ]
    if report.depth:
        last = report.depth[-1]
        room = last.ceiling - report.depth[0].reached
        taken = (last.reached - report.depth[0].reached) / room if room > 0 else 0.0
        said = (
            f"Re-ranking {last.depth} hits could reach {last.ceiling:.3f} at best; "
            f"the re-ranking goes {taken:.0%} of the way there from the base."
        )
        figures.insert(0, _figure(draw_depth(report.depth, first.measure), said))
    if not figures:
        return ""
    return (
        f'<h2>Where</h2><p class="small">{_EXPLORED}</p>'
        f'<div class="figures">{"".join(figures)}</div>'
    )


def _trust(report: Report) -> str:
    figures = []
    if report.calibrated is not None:
        one = report.calibrated
        svg = draw_calibration(one.probabilities, one.relevant, one.error)
        told = f"Calibration {one.how}: probabilities are {one.error:.3f} off on average."
        figures.append(_figure(svg, told))
    elif report.no_calibration:
        figures.append(f'<p class="small">No calibration: {escape(report.no_calibration)}.</p>')
    if report.curve is not None:
        image = base64.b64encode(report.curve).decode()
        figures.append(
            '<figure><img style="max-width:100%" alt="Loss and validation over the steps of each '
            f'training phase" src="data:image/png;base64,{image}">'
            "<figcaption>Training: loss and validation.</figcaption></figure>"
        )
    if not figures:
        return ""
    return f'<h2>Scores and training</h2><div class="figures">{"".join(figures)}</div>'


def _stories(title: str, stories: Sequence[Story], *, gained: bool) -> str:
    told = [one for one in stories if (one.new > one.base if gained else one.new < one.base)]
    parts = [
        f"<details{' open' if place == 0 else ''}><summary>{escape(one.query)} "
        f'<span class="small">{one.base:.3f} → {one.new:.3f}</span></summary>'
        f'<div class="looks"><div><h3>base</h3>{_hits(one.base_hits)}</div>'
        f"<div><h3>new</h3>{_hits(one.new_hits)}</div></div></details>"
        for place, one in enumerate(told)
    ]
    return f"<h2>{title}</h2>{''.join(parts)}" if parts else ""


def _hits(hits: Sequence[ShownHit]) -> str:
    return f"<ol>{''.join(map(_hit, hits))}</ol>"


def _hit(hit: ShownHit) -> str:
    grade = "not judged" if hit.grade is None else f"grade {hit.grade}"
    cut = hit.text if len(hit.text) <= _SNIPPET else hit.text[:_SNIPPET].rsplit(" ", 1)[0] + " …"
    strong = "b" if hit.grade else "span"
    return f"<li><{strong}>{grade}</{strong}> · {escape(hit.doc_id)} {escape(cut)}</li>"


def _dropped(report: Report) -> str:
    if report.dropped_figures is None:
        return ""
    figures = ", ".join(f"{name} {value:g}" for name, value in report.dropped_figures.items())
    rows = [
        [str(one["query"]), str(one["text"])[:_SNIPPET], f"{one['score']:.3f}"]
        for one in report.dropped
    ]
    return f"<h2>Labels that noise reduction took out</h2><p>{escape(figures)}</p>" + table(
        ["query", "taken for an unmarked positive", "score"], rows, names=2
    )


def _made(report: Report) -> str:
    parts = []
    if report.lineage:
        rows = [
            [name, ", ".join(f"{key} {value:g}" for key, value in figures.items())]
            for name, figures in report.lineage
        ]
        parts.append("<h2>Lineage</h2>" + table(["step", "figures"], rows, names=2))
    if report.commands:
        lines = escape("\n".join(report.commands))
        parts.append(f"<h2>To make it again</h2><pre>{lines}</pre>")
    return "".join(parts)
