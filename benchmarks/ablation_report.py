"""What `ablation.py` found: tables, learning curves, and DR-BERT's two cases, of what is done.

`write_report` writes OUTPUT/report.md and the pictures it shows, OUTPUT/pictures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ablation_data import DOMAINS
from secondlook.data.durable import write_at_once
from secondlook.evaluate.ablation import Part, contrast_table, contrasts
from secondlook.explain import explain
from secondlook.explain.findings import AttentionMap, Findings
from secondlook.score.ranker import Ranker
from secondlook.train.groups import Groups
from secondlook.types import Document, Query
from secondlook.workflows.ablate import read_figures, slug

SETTINGS = ("encoder", "cross-encoder")
MAIN = ("plain", "plain + STRM", "plain + markers", "plain + types", "whole")
REST = ("plain + adapt", "plain + listwise", "listwise only", "plain + denoise")
SEEDS = {"nfcorpus": (1, 2, 3), "squad": (1, 2)}
MEASURE = "nDCG@10"
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
EXACT = 0.75
"""From this share of a query's terms in a relevant candidate on, it is an exact-match query."""
CASES = {
    "what is bogue": (
        "bogue",
        "bogus",
        "Bogus means not genuine: a bogus claim is false, and bogus money is fake.",
    ),
    "insouciantly meaning": (
        "insouciantly",
        "ins",
        "In an insurance contract, in the sense of the act, ins is insured.",
    ),
}
"""DR-BERT's two queries of figure 1, each with a word, one that only looks like it, and a text of
ours that has the second: it shares sub-tokens with the query, and no more."""
OTHERS = 100
FEWEST = 20
"""Queries that a row of a table needs."""


def write_report(output: Path) -> Path:
    """The whole report of the trainings that are over."""
    pictures = output / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*tables(output), *curves(output, pictures), *cases(output, pictures)])
    write_at_once(output / "report.md", f"# Ablation\n\n{text}\n")
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
        yield f"## {setting}, {domain}\n"
        yield f"| variant | {MEASURE} by seed | mean |\n|---|---|---|"
        for variant, seeds in figures.items():
            means = [float(np.mean(list(values.values()))) for values in seeds.values()]
            shown = ", ".join(f"{mean:.4f}" for mean in means)
            yield f"| {variant} | {shown} | {np.mean(means):.4f} |"
        facets = json.loads((output / "data" / domain / "facets.json").read_text("utf-8"))
        everywhere = [Part(name, having, "plain") for name, having in PARTS.items()]
        for title, parts in {"All queries": everywhere, "By query": targets(facets)}.items():
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


def curves(output: Path, pictures: Path) -> Iterator[str]:
    """The measure on the validation queries over the steps, with and without each part, seed 1."""
    for setting, domain, folder in cells(output):
        found = {variant: curve(folder, variant) for variant in ("plain", *PARTS.values())}
        shown = {part: found[having] for part, having in PARTS.items() if found[having]}
        if not found["plain"] or not shown:
            continue
        columns = min(4, len(shown))
        rows = -(-len(shown) // columns)
        figure, panels = _panels(rows, columns, (3.2 * columns, 2.6 * rows), sharey=True)
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
        figure.savefig(pictures / name)
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


def cases(output: Path, pictures: Path) -> Iterator[str]:
    """DR-BERT's table 3 and figure 4: texts that only seem to match, without and with STRM."""
    yield "## Words that only look alike\n"
    yield "Score and rank of a text that shares sub-tokens with the query, and no more. Attention:"
    yield "of what the query's word sees of the text, mean of all layers and heads, the share that"
    yield "the other word gets.\n"
    yield "| trained | query | variant | score | rank | attention |"
    yield "|---|---|---|---|---|---|"
    drawn = []
    for setting, domain, folder in cells(output):
        rankers = {
            variant: Ranker.load(folder / f"{slug(variant)}.1", backend="torch", device="cpu")
            for variant in ("plain", "plain + STRM")
            if read_figures(folder, variant, 1)
        }
        groups = Groups([output / "data" / domain / "test.parquet"])
        others = [groups[at].documents[0] for at in range(min(OTHERS, len(groups)))]
        for text, (word, other, alike) in CASES.items():
            found: dict[str, Findings] = {}
            for variant, ranker in rankers.items():
                scores = ranker.score(
                    [(Query("q", text), document) for document in (Document("", alike), *others)]
                )
                rank = f"{1 + int((scores[1:] > scores[0]).sum())} of {len(scores)}"
                found[variant] = explain(text, alike, ranker)
                share = f"{seen(found[variant], word, other):.0%}"
                row = (f"{setting}, {domain}", text, variant, f"{scores[0]:.3f}", rank, share)
                yield f"| {' | '.join(row)} |"
            if len(found) == 2:
                name = f"attention-{setting}-{domain}-{word}.svg"
                _draw_attention(found, pictures / name)
                drawn.append(f"![Attention, {setting}, {domain}, {word}](pictures/{name})\n")
    yield ""
    yield from drawn


def _as_scored(found: Findings) -> AttentionMap:
    """With STRM or without, as the ranker was trained."""
    return next(attention for attention in found.attention if attention.as_trained)


def seen(found: Findings, word: str, other: str) -> float:
    """Of a query word's attention to the document, the share that another word gets."""
    weights = np.array(_as_scored(found).query_to_document)  # [query words, document words]
    [row] = [at for at, one in enumerate(found.query_words) if one.text.lower() == word]
    same = [at for at, one in enumerate(found.document_words) if one.text.lower() == other]
    return float(weights[row, same].sum() / weights[row].sum())


def _draw_attention(found: Mapping[str, Findings], path: Path) -> None:
    """From the query's words to the text's, a panel for each ranker, in one scale."""
    figure, panels = _panels(len(found), 1, (7, 1.6 * len(found) + 1.2), sharex=True)
    top = max(float(np.max(_as_scored(one).query_to_document)) for one in found.values())
    for panel, (variant, one) in zip(panels, found.items(), strict=True):
        panel.imshow(_as_scored(one).query_to_document, cmap="Blues", vmin=0, vmax=top)
        panel.set_yticks(range(len(one.query_words)), [word.text for word in one.query_words])
        words = [word.text for word in one.document_words]
        panel.set_xticks(range(len(words)), words, rotation=60, ha="right")
        panel.set_title(variant, fontsize="small")
    figure.savefig(path)


def _panels(
    rows: int, columns: int, size: tuple[float, float], **shared: bool
) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
