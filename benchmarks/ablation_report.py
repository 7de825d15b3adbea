"""What `ablation.py` found: tables, learning curves, and the papers' examples, of what is done.

`write_report` writes OUTPUT/report.md and the pictures it shows, OUTPUT/pictures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ablation_cases import cases, panels_of
from ablation_data import DOMAINS, MEASURE
from secondlook.data.durable import write_at_once
from secondlook.evaluate.ablation import Part, contrast_table, contrasts
from secondlook.evaluate.curve import write_picture
from secondlook.workflows.ablate import read_figures

SETTINGS = ("encoder", "cross-encoder")
MAIN = ("plain", "plain + STRM", "plain + markers", "plain + types", "whole")
REST = ("plain + adapt", "plain + listwise", "listwise only", "plain + denoise")
SEEDS = {"nfcorpus": (1, 2, 3), "insuranceqa": (1, 2)}
PARTS = {
    "STRM": "plain + STRM",
    "markers": "plain + markers",
    "query types": "plain + types",
    "adapt": "plain + adapt",
    "noise reduction": "plain + denoise",
    "listwise instead of pointwise": "listwise only",
    "pointwise, then listwise": "plain + listwise",
    "all of it": "whole",
}
"""Each part and the recipe that has it; `plain`, the pointwise phase alone, lacks them all."""
EVERYWHERE = [Part(name, having, "plain") for name, having in PARTS.items()]
"""The parts, over all queries."""
EXACT = 0.75
"""From this share of a query's terms in a relevant candidate on, it is an exact-match query."""
FEWEST = 20
"""Queries that a row of a table needs."""


def write_report(output: Path) -> Path:
    """The whole report of the trainings that are over."""
    pictures = output / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    looked_at = cases(cells(output), output)
    drawn = (*differences(output, pictures), *curves(output, pictures))
    text = "\n".join([*tables(output), *drawn, *looked_at])
    write_at_once(output / "report.md", f"# Ablation\n{text}\n")
    return output / "report.md"


def cells(output: Path) -> Iterator[tuple[str, str, Path]]:
    """Setting, domain and folder, where at least `plain` is over."""
    for setting in SETTINGS:
        for domain in DOMAINS:
            folder = output / setting / domain
            if any(read_figures(folder, "plain", seed) for seed in SEEDS[domain]):
                yield setting, domain, folder


def figures_of(folder: Path, domain: str) -> dict[str, dict[int, dict[str, float]]]:
    """Variant → seed → query → value, of the trainings that are over."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for variant in (*MAIN, *REST):
        for seed in SEEDS[domain]:
            if kept := read_figures(folder, variant, seed):
                found.setdefault(variant, {})[seed] = kept["values"]
    return found


def tables(output: Path) -> Iterator[str]:
    """For every setting and domain: all variants, what each part changes, and for which queries.

    p-values are Holm-adjusted over each table.
    """
    for setting, domain, folder in cells(output):
        figures = figures_of(folder, domain)
        facets = json.loads((output / "data" / domain / "facets.json").read_text("utf-8"))
        yield f"\n## {setting}, {domain}\n"
        yield f"| variant | {MEASURE} by seed | mean |\n|---|---|---|"
        yield f"| BM25's order | | {np.mean([known['BM25'] for known in facets.values()]):.4f} |"
        for variant, seeds in figures.items():
            means = [float(np.mean(list(values.values()))) for values in seeds.values()]
            shown = ", ".join(f"{mean:.4f}" for mean in means)
            yield f"| {variant} | {shown} | {np.mean(means):.4f} |"
        for title, parts in {"All queries": EVERYWHERE, "By query": targets(facets)}.items():
            rows = contrasts(figures, parts, np.random.default_rng(0))
            if rows:
                yield f"\n### {title}\n\n{contrast_table(rows, MEASURE)}"


def targets(facets: Mapping[str, Mapping[str, str | float]]) -> list[Part]:
    """The parts on the queries that they are meant for, and on the others, if not too few."""
    split = {query for query, known in facets.items() if float(known["split words"]) > 0}
    share = {
        query: float(known["terms in a relevant candidate"]) for query, known in facets.items()
    }
    exact = {query for query, held in share.items() if held >= EXACT}
    chosen = [
        ("STRM", "queries with split words", split),
        ("STRM", "other queries", set(facets) - split),
        ("markers", "a relevant candidate holds three quarters of the terms", exact),
        ("markers", "other queries", set(facets) - exact),
    ]
    for kind in sorted({str(known["type"]) for known in facets.values()}):
        of_kind = {query for query, known in facets.items() if known["type"] == kind}
        chosen.append(("query types", kind, of_kind))
    return [
        Part(f"{part}: {which}", PARTS[part], "plain", some)
        for part, which, some in chosen
        if len(some) >= FEWEST
    ]


def differences(output: Path, pictures: Path) -> Iterator[str]:
    """What each part changes, with its interval, in all settings and domains at once."""
    rows_of = {
        (setting, domain): contrasts(
            figures_of(folder, domain), EVERYWHERE, np.random.default_rng(0)
        )
        for setting, domain, folder in cells(output)
    }
    rows_of = {where: rows for where, rows in rows_of.items() if rows}
    if not rows_of:
        return
    figure, panels = panels_of(1, len(rows_of), (2 + 2.4 * len(rows_of), 3.2), sharex=True)
    names = list(PARTS)[::-1]
    for panel, ((setting, domain), rows) in zip(panels, rows_of.items(), strict=True):
        panel.axvline(0, color="gray", linewidth=0.8)
        for row in rows:
            at = names.index(row.part)
            if row.over_seeds:
                panel.hlines(at, row.over_seeds.low, row.over_seeds.high, color="C0", alpha=0.4)
            panel.hlines(at, row.low, row.high, color="C0", linewidth=2.5)
            panel.plot(row.delta, at, marker="o", color="C0")
        panel.set_yticks(range(len(names)), names if panel is panels[0] else [])
        panel.set_ylim(-0.5, len(names) - 0.5)
        panel.set_title(f"{setting}, {domain}", fontsize="small")
        panel.tick_params(labelsize="small")
        panel.locator_params(axis="x", nbins=4)
    label = f"{MEASURE}, difference from plain, 95% interval over queries (light: other seeds too)"
    figure.supxlabel(label, fontsize="small")
    write_picture(figure, pictures / "differences.svg")
    yield "![What each part changes](pictures/differences.svg)\n"


def curves(output: Path, pictures: Path) -> Iterator[str]:
    """The measure on the validation queries over the steps, with and without each part, seed 1."""
    for setting, domain, folder in cells(output):
        found = {variant: curve(folder, variant) for variant in ("plain", *PARTS.values())}
        shown = {part: found[having] for part, having in PARTS.items() if found[having]}
        if not found["plain"] or not shown:
            continue
        columns = min(4, len(shown))
        rows = -(-len(shown) // columns)
        figure, panels = panels_of(rows, columns, (3.2 * columns, 2.6 * rows), sharey=True)
        for panel, (part, points) in zip(panels, shown.items(), strict=False):
            panel.plot(*zip(*found["plain"], strict=True), marker=".", color="gray", label="plain")
            panel.plot(*zip(*points, strict=True), marker=".", label=PARTS[part])
            panel.set_title(part, fontsize="small")
            panel.legend(fontsize="x-small")
        for panel in panels[len(shown) :]:
            panel.axis("off")
        name = f"curves-{setting}-{domain}.svg"
        figure.supxlabel("ranking step", fontsize="small")
        figure.supylabel(f"{MEASURE}, validation queries", fontsize="small")
        write_picture(figure, pictures / name)
        yield f"![Learning curves, {setting}, {domain}](pictures/{name})\n"


def curve(folder: Path, variant: str) -> list[tuple[float, float]]:
    """(step, measure) of the ranking phases, one behind the other; empty where it is not over."""
    points: list[tuple[float, float]] = []
    before = 0.0
    figures = read_figures(folder, variant, 1)
    for phase in figures["history"] if figures else ():
        measured = [point for point in phase["points"] if MEASURE in point]
        points += [(before + point["step"], point[MEASURE]) for point in measured]
        before = points[-1][0] if measured else before
    return points
