"""The tables of docs/results/ablations.md, made of what `ablation.py` found.

    python benchmarks/ablation.py tables OUTPUT

A test compares them with the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ablation_data import DOMAINS, MEASURE
from ablation_report import EVERYWHERE, SETTINGS, cells, figures_of, targets
from secondlook.evaluate.ablation import Contrast, Part, contrasts
from secondlook.evaluate.seeds import OverSeeds

Facets = Mapping[str, Mapping[str, str | float]]
NAMES = {"nfcorpus": "NFCorpus", "insuranceqa": "InsuranceQA"}
TRAINED = {
    "encoder": "**(a)** three layers, new head, 40,000 pairs: plain",
    "cross-encoder": "**(b)** trained cross-encoder, 12 layers, 10,240 pairs: plain",
}
ROWS = {
    "STRM": "+ STRM",
    "markers": "+ markers",
    "query types": "+ query types",
    "adapt": "+ adapt",
    "noise reduction": "+ noise reduction",
    "pointwise, then listwise": "listwise after pointwise",
    "listwise instead of pointwise": "listwise instead of pointwise",
    "all of it": "whole recipe",
}
_HEAD = (
    f"| | seeds | {MEASURE} | difference | 95% interval | p | 95%, other seeds too "
    "| p, other seeds too |\n|---|---|---|---|---|---|---|---|"
)


def page_tables(output: Path) -> Iterator[str]:
    """All parts in both settings and domains, then the parts on the queries they are meant for.

    `plain` is compared with BM25's order, by itself; a part with `plain`.
    """
    found: dict[str, dict[str, Path]] = {domain: {} for domain in DOMAINS}
    for setting, domain, folder in cells(output):
        found[domain][setting] = folder
    known = {domain: _facets(output, domain) for domain, folders in found.items() if folders}
    yield "\n".join([_HEAD, *(row for one in known for row in _rows(one, found[one], known[one]))])
    for domain, facets in known.items():
        yield "\n".join(_by_query(domain, found[domain], facets))


def _facets(output: Path, domain: str) -> Facets:
    facets: Facets = json.loads((output / "data" / domain / "facets.json").read_text("utf-8"))
    return facets


def _rows(domain: str, folders: Mapping[str, Path], facets: Facets) -> Iterator[str]:
    bm25 = float(np.mean([float(known["BM25"]) for known in facets.values()]))
    name = f"**{NAMES[domain]}**, {len(facets):,} test queries"
    yield f"| {name}: BM25's order | | {plain(bm25)} | | | | | |"
    for setting, folder in folders.items():
        figures = figures_of(folder, domain)
        order = {query: float(of_query["BM25"]) for query, of_query in facets.items()}
        both = {"plain": figures["plain"], "BM25": dict.fromkeys(figures["plain"], order)}
        [gain] = contrasts(both, [Part(TRAINED[setting], "plain", "BM25")], chance())
        yield _row(TRAINED[setting], gain)
        rows = {row.part: row for row in contrasts(figures, EVERYWHERE, chance())}
        yield from (_row(shown, rows[part]) for part, shown in ROWS.items() if part in rows)


def _by_query(domain: str, folders: Mapping[str, Path], facets: Facets) -> Iterator[str]:
    yield f"| {NAMES[domain]} | queries | (a) | (b) |"
    yield "|---|---|---|---|"
    parts = targets(facets)
    found = {
        setting: {row.part: row for row in contrasts(figures_of(folder, domain), parts, chance())}
        for setting, folder in folders.items()
    }
    for part in parts:
        rows = [found.get(setting, {}).get(part.name) for setting in SETTINGS]
        shown = " | ".join(f"{signed(row.delta)} ({_interval(row)})" if row else "" for row in rows)
        yield f"| {part.name} | {len(part.queries or ())} | {shown} |"


def _row(name: str, row: Contrast) -> str:
    return f"| {name} | {len(row.by_seed)} | {plain(row.base + row.delta)} | {_difference(row)} |"


def _difference(row: Contrast) -> str:
    both = row.over_seeds
    wider = f"{_interval(both)} | {probability(both.p)}" if both else "|"
    return f"{signed(row.delta)} | {_interval(row)} | {probability(row.adjusted)} | {wider}"


def _interval(row: Contrast | OverSeeds) -> str:
    return f"{signed(row.low)} to {signed(row.high)}"


def chance() -> np.random.Generator:
    """The same for every table."""
    return np.random.default_rng(0)


def plain(value: float) -> str:
    """As .3037."""
    return f"{value:.4f}".removeprefix("0")


def signed(value: float) -> str:
    """As −.0108."""
    rounded = f"{abs(value):.4f}".removeprefix("0")
    return f"{'−' if value < 0 and float(rounded) else '+'}{rounded}"


def probability(p: float) -> str:
    """As .019, .30 or < .001."""
    if p < 0.001:
        return "< .001"
    if p > 0.995:
        return "1.0"
    return f"{p:.{3 if p < 0.0995 else 2}f}".removeprefix("0")
