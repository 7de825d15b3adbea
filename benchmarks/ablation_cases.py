"""The papers' own examples in the rankers of `ablation.py`: which words of a text are looked at.

What was found stays in OUTPUT/SETTING/DOMAIN/case-WORD.json, so that a report can be made without
the rankers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from secondlook.data.durable import write_at_once
from secondlook.evaluate.curve import write_picture
from secondlook.explain import explain
from secondlook.explain.findings import AttentionMap, Findings
from secondlook.score.ranker import Ranker
from secondlook.train.groups import Groups
from secondlook.types import Document, Query
from secondlook.workflows.ablate import read_figures, slug


@dataclass(frozen=True)
class Case:
    """A query of a paper, and a text of ours that has words like the query's."""

    name: str
    variant: str
    """The variant it is about, which is compared with `plain`."""
    query: str
    text: str
    like: Mapping[str, str]
    """A word of the query: the word of the text that is like it."""


CASES = (
    Case(
        "bogue",
        "plain + STRM",
        "what is bogue",
        "Bogus means not genuine: a bogus claim is false, and bogus money is fake.",
        {"bogue": "bogus"},
    ),
    Case(
        "insouciantly",
        "plain + STRM",
        "insouciantly meaning",
        "In an insurance contract, in the sense of the act, ins is insured.",
        {"insouciantly": "ins"},
    ),
    Case(
        "ghost",
        "plain + markers",
        "ghost meaning urban",
        "A ghost town is a deserted settlement: an urban area that its people have left.",
        {"ghost": "ghost", "urban": "urban"},
    ),
)
"""The two queries of DR-BERT's figure 1, whose texts share sub-tokens with them and no more, and
that of MarkedBERT's figure 3, whose text answers it."""
OTHERS = 100


def cases(cells: Iterable[tuple[str, str, Path]], output: Path) -> Iterator[str]:
    """DR-BERT's table 3 and figure 4, MarkedBERT's figure 3."""
    yield "## The papers' examples\n"
    yield "DR-BERT: a text that shares sub-tokens with the query, and no more. MarkedBERT: a text"
    yield f"that answers the query. Score, rank among {OTHERS} other texts, and attention: of what"
    yield "the query's word sees of the text, mean of all layers and heads, the share that the word"
    yield "like it gets.\n"
    yield "| trained | query | variant | score | rank | attention |"
    yield "|---|---|---|---|---|---|"
    drawn = []
    for setting, domain, folder in cells:
        for case in CASES:
            kept = folder / f"case-{case.name}.json"
            name = f"attention-{setting}-{domain}-{case.name}.svg"
            if not kept.is_file() and trained(folder, "plain") and trained(folder, case.variant):
                rows = looked_at(case, folder, output / "data" / domain, output / "pictures" / name)
                write_at_once(kept, json.dumps(rows, indent=1) + "\n")
            if kept.is_file():
                for row in json.loads(kept.read_text("utf-8")):
                    yield f"| {setting}, {domain} | {' | '.join(row)} |"
                drawn.append(f"![Attention, {setting}, {domain}, {case.name}](pictures/{name})\n")
    yield ""
    yield from drawn


def trained(folder: Path, variant: str) -> bool:
    """Whether its training with seed 1 is over, and its ranker is still there."""
    over = read_figures(folder, variant, 1) is not None
    return over and (folder / f"{slug(variant)}.1").is_dir()


def looked_at(case: Case, folder: Path, data: Path, picture: Path) -> list[list[str]]:
    """Query, variant, score, rank and attention, without and with; the attention is drawn, too."""
    found_by_bm25 = (
        group.documents[0] for group in Groups([data / "test.parquet"]) if group.documents
    )
    documents = [Document("", case.text), *islice(found_by_bm25, OTHERS)]
    rows: list[list[str]] = []
    found: dict[str, Findings] = {}
    for variant in ("plain", case.variant):
        ranker = Ranker.load(folder / f"{slug(variant)}.1", backend="torch", device="cpu")
        scores = ranker.score([(Query("q", case.query), document) for document in documents])
        rank = f"{1 + int((scores[1:] > scores[0]).sum())} of {len(scores)}"
        found[variant] = explain(case.query, case.text, ranker)
        share = f"{seen(found[variant], case.like):.0%}"
        rows.append([case.query, variant, f"{scores[0]:.3f}", rank, share])
    _draw_attention(found, picture)
    return rows


def _as_scored(found: Findings) -> AttentionMap:
    """With STRM or without, as the ranker was trained."""
    return next(attention for attention in found.attention if attention.as_trained)


def seen(found: Findings, like: Mapping[str, str]) -> float:
    """Of what these words of the query see of the document, the share that words like them get."""
    weights = np.array(_as_scored(found).query_to_document)  # [query words, document words]
    query = [word.text.lower() for word in found.query_words]
    document = np.array([word.text.lower() for word in found.document_words])
    rows = {word: weights[query.index(word)] for word in like}
    to_alike = sum(rows[word][document == other].sum() for word, other in like.items())
    return float(to_alike / sum(row.sum() for row in rows.values()))


def _draw_attention(found: Mapping[str, Findings], path: Path) -> None:
    """From the query's words to the text's, a panel for each ranker, in one scale."""
    figure, panels = panels_of(len(found), 1, (7, 1.6 * len(found) + 1.2), sharex=True)
    top = max(float(np.max(_as_scored(one).query_to_document)) for one in found.values())
    for panel, (variant, one) in zip(panels, found.items(), strict=True):
        panel.imshow(_as_scored(one).query_to_document, cmap="Blues", vmin=0, vmax=top)
        panel.set_yticks(range(len(one.query_words)), [word.text for word in one.query_words])
        words = [word.text for word in one.document_words]
        panel.set_xticks(range(len(words)), words, rotation=60, ha="right")
        panel.set_title(variant, fontsize="small")
    write_picture(figure, path)


def panels_of(
    rows: int, columns: int, size: tuple[float, float], **shared: bool
) -> tuple[Any, list[Any]]:
    """A figure and its panels."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
