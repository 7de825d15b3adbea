"""Figures for the report, as SVG inside the page: readable in grey and by a screen reader."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.errors import MissingExtra
from secondlook.web_page import BLUE, GREY, ORANGE

try:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtra("report", "drawing a report") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from secondlook.evaluate.bakeoff import Contest
    from secondlook.evaluate.breakdown import Breakdown
    from secondlook.evaluate.comparison import Difference
    from secondlook.evaluate.depth import Depth

_STYLE: Any = {  # matplotlib's type names every key there is
    "svg.fonttype": "none",  # words stay words: they can be found, copied and read aloud
    "svg.hashsalt": "secondlook",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


@dataclass
class Drawing:
    """A figure in the making, and the SVG it became."""

    axes: Any
    svg: str = ""


def draw_deltas(one: Difference) -> str:
    """The difference of each query, sorted, with lines at the quartiles: MarkedBERT's figure 2."""
    deltas = np.sort(np.array(list(one.deltas.values())))[::-1]
    quartiles = np.quantile(deltas, [0.25, 0.5, 0.75])
    alt = (
        f"{one.measure} per query, new minus base, sorted: {one.wins} queries gain, {one.ties} "
        f"stay, {one.losses} lose; quartiles {', '.join(f'{q:+.3f}' for q in quartiles)}"
    )
    with _drawn(alt, 7.4, 2.9) as drawing:
        axes = drawing.axes
        # One area for each colour: a bar for each of MS MARCO's 7,000 queries takes 10 seconds.
        edges, heights = np.arange(len(deltas) + 1) - 0.5, np.append(deltas, 0.0)
        for colour, part in ((BLUE, heights.clip(min=0)), (ORANGE, heights.clip(max=0))):
            axes.fill_between(edges, part, step="post", color=colour, linewidth=0)
        for share in (0.25, 0.5, 0.75):
            axes.axvline(share * len(deltas) - 0.5, color=GREY, linestyle=":", linewidth=1)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xlim(-0.5, len(deltas) - 0.5)
        axes.set_xlabel("queries, most helped first; dotted: quartiles")
        axes.set_ylabel(f"Δ {one.measure}")
    return drawing.svg


def draw_breakdown(one: Breakdown, measure: str) -> str:
    """The difference in each group, with its interval."""
    labels = [f"{part.label} (n={part.queries})" for part in one.slices]
    deltas = np.array([part.delta for part in one.slices])
    reach = np.array([[p.delta - p.low, p.high - p.delta] for p in one.slices]).T
    alt = f"Δ {measure} by {one.name}: " + "; ".join(
        f"{label} {part.delta:+.3f} from {part.low:+.3f} to {part.high:+.3f}"
        for label, part in zip(labels, one.slices, strict=True)
    )
    with _drawn(alt, 4.6, 0.9 + 0.32 * len(labels)) as drawing:
        axes, places = drawing.axes, np.arange(len(labels))
        axes.barh(places, deltas, color=np.where(deltas >= 0, BLUE, ORANGE), height=0.6)
        axes.errorbar(
            deltas, places, xerr=np.maximum(reach, 0), fmt="none", ecolor="black", capsize=3
        )
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        axes.set_xlabel(f"Δ {measure}, with 95% intervals")
    return drawing.svg


def draw_depth(curve: Sequence[Depth], measure: str) -> str:
    """What is reached at each depth, under the ceiling."""
    last = curve[-1]
    alt = (
        f"{measure} by depth: {curve[0].reached:.3f} without re-ranking, {last.reached:.3f} at "
        f"depth {last.depth}, where the best possible order has {last.ceiling:.3f}"
    )
    with _drawn(alt, 4.6, 3.1) as drawing:
        axes, depths = drawing.axes, [one.depth for one in curve]
        ceiling = [one.ceiling for one in curve]
        axes.plot(depths, ceiling, color=GREY, linestyle="--", marker="s", label="best possible")
        reached = [one.reached for one in curve]
        axes.plot(depths, reached, color=BLUE, marker="o", label="second look")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xticks(depths, [str(depth) for depth in depths])
        axes.minorticks_off()
        axes.set_xlabel("how many hits the re-ranking sees")
        axes.set_ylabel(measure)
        axes.grid(axis="y", color="#ddd")
        axes.legend(frameon=False)
    return drawing.svg


def draw_calibration(
    probabilities: NDArray[np.float64], relevant: NDArray[np.bool_], error: float
) -> str:
    """The share that is relevant among pairs of like probability."""
    places = np.minimum((probabilities * 10).astype(np.intp), 9)
    bins = [np.flatnonzero(places == place) for place in range(10)]
    points = [
        (probabilities[b].mean(), relevant[b].mean(), len(b)) for b in bins if len(b)
    ]  # said, true, how many
    alt = f"Calibration, expected error {error:.3f}: " + "; ".join(
        f"said {said:.2f}, true {true:.2f} of {count}" for said, true, count in points
    )
    with _drawn(alt, 4.6, 3.1) as drawing:
        axes = drawing.axes
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="perfect")
        said, true, counts = (np.array(column) for column in zip(*points, strict=True))
        axes.plot(said, true, color=BLUE, linewidth=1)
        axes.scatter(
            said, true, s=12 + 150 * counts / counts.max(), color=BLUE, label="judged pairs"
        )
        axes.set_xlabel("probability that is shown")
        axes.set_ylabel("share that is relevant")
        axes.legend(frameon=False, loc="upper left")
    return drawing.svg


def draw_tradeoff(found: Contest) -> str:
    """Quality of each re-ranker over its latency, with intervals; the first stage as a line."""
    first, *rows = found.rows
    timed = [row for row in rows if row.median_ms is not None]
    level = first.measures[found.measure]
    alt = f"{found.measure} and median latency; first stage {level:.3f}: " + "; ".join(
        f"{row.name} {row.measures[found.measure]:.3f} from {row.low:.3f} to {row.high:.3f}"
        + (f", {row.median_ms:,.0f} ms" if row.median_ms is not None else ", not timed")
        for row in rows
    )
    with _drawn(alt, 7.4, 4.2) as drawing:
        axes = drawing.axes
        axes.axhline(level, color=GREY, linestyle="--", linewidth=1, label=first.name)
        for at, row in enumerate(timed):
            value = row.measures[found.measure]
            reach = [[max(0.0, value - row.low)], [max(0.0, row.high - value)]]
            axes.errorbar(
                [row.median_ms],
                [value],
                yerr=reach,
                fmt=_MARKERS[at % len(_MARKERS)],
                color=_COLOURS[at % len(_COLOURS)],
                markersize=8,
                capsize=4,
                label=row.name,
            )
        if timed:
            _log_ticks(axes, [row.median_ms or 1.0 for row in timed])
        axes.set_xlabel("median latency of re-ranking a search, ms")
        axes.set_ylabel(found.measure)
        axes.grid(axis="y", color="#ddd")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, -0.16), ncols=2)
    return drawing.svg


def _log_ticks(axes: Any, values: Sequence[float]) -> None:  # noqa: ANN401 - matplotlib's
    """A logarithmic axis with plain numbers at 1, 2 and 5."""
    low, high = min(values) / 1.5, max(values) * 1.5
    ticks = [step * 10.0**power for power in range(-3, 8) for step in (1, 2, 5)]
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(shown, [f"{tick:,g}" for tick in shown])
    axes.minorticks_off()


_MARKERS = "osD^vPX*"
_COLOURS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's."""


@contextmanager
def _drawn(alt: str, width: float, height: float) -> Iterator[Drawing]:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        canvas: Any = FigureCanvasSVG(figure)
        drawing = Drawing(figure.subplots())
        yield drawing
        written = StringIO()
        canvas.print_svg(written, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    drawing.svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
