"""DR-BERT's two cases in the rankers of `ablation.py`: words that only look alike.

What was found stays in OUTPUT/SETTING/DOMAIN/cases.json, so that a report can be made without the
rankers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from secondlook.data.durable import write_at_once
from secondlook.explain import explain
from secondlook.explain.findings import AttentionMap, Findings
from secondlook.score.ranker import Ranker
from secondlook.train.groups import Groups
from secondlook.types import Document, Query
from secondlook.workflows.ablate import read_figures, slug

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
WITHOUT_AND_WITH = ("plain", "plain + STRM")
OTHERS = 100


def cases(cells: Iterable[tuple[str, str, Path]], output: Path) -> Iterator[str]:
    """DR-BERT's table 3 and figure 4: texts that only seem to match, without and with STRM."""
    yield "## Words that only look alike\n"
    yield "Score and rank of a text that shares sub-tokens with the query, and no more. Attention:"
    yield "of what the query's word sees of the text, mean of all layers and heads, the share that"
    yield "the other word gets.\n"
    yield "| trained | query | variant | score | rank | attention |"
    yield "|---|---|---|---|---|---|"
    drawn = []
    for setting, domain, folder in cells:
        kept = folder / "cases.json"
        if not kept.is_file() and all(trained(folder, one) for one in WITHOUT_AND_WITH):
            rows = list(looked_at(folder, output, setting, domain))
            write_at_once(kept, json.dumps(rows, indent=1) + "\n")
        if not kept.is_file():
            continue
        for row in json.loads(kept.read_text("utf-8")):
            yield f"| {setting}, {domain} | {' | '.join(row)} |"
        for word, _, _ in CASES.values():
            name = picture(setting, domain, word)
            drawn.append(f"![Attention, {setting}, {domain}, {word}](pictures/{name})\n")
    yield ""
    yield from drawn


def trained(folder: Path, variant: str) -> bool:
    """Whether its training with seed 1 is over, and its ranker is still there."""
    over = read_figures(folder, variant, 1) is not None
    return over and (folder / f"{slug(variant)}.1").is_dir()


def looked_at(folder: Path, output: Path, setting: str, domain: str) -> Iterator[list[str]]:
    """Query, variant, score, rank and attention of each case; the attention is drawn, too."""
    rankers = {
        variant: Ranker.load(folder / f"{slug(variant)}.1", backend="torch", device="cpu")
        for variant in WITHOUT_AND_WITH
    }
    groups = Groups([output / "data" / domain / "test.parquet"])
    found_by_bm25 = (group.documents[0] for group in groups if group.documents)
    others = list(islice(found_by_bm25, OTHERS))
    for text, (word, other, alike) in CASES.items():
        found: dict[str, Findings] = {}
        for variant, ranker in rankers.items():
            scores = ranker.score(
                [(Query("q", text), document) for document in (Document("", alike), *others)]
            )
            rank = f"{1 + int((scores[1:] > scores[0]).sum())} of {len(scores)}"
            found[variant] = explain(text, alike, ranker)
            share = f"{seen(found[variant], word, other):.0%}"
            yield [text, variant, f"{scores[0]:.3f}", rank, share]
        _draw_attention(found, output / "pictures" / picture(setting, domain, word))


def picture(setting: str, domain: str, word: str) -> str:
    """The name of the file with its attention."""
    return f"attention-{setting}-{domain}-{word}.svg"


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
    figure, panels = panels_of(len(found), 1, (7, 1.6 * len(found) + 1.2), sharex=True)
    top = max(float(np.max(_as_scored(one).query_to_document)) for one in found.values())
    for panel, (variant, one) in zip(panels, found.items(), strict=True):
        panel.imshow(_as_scored(one).query_to_document, cmap="Blues", vmin=0, vmax=top)
        panel.set_yticks(range(len(one.query_words)), [word.text for word in one.query_words])
        words = [word.text for word in one.document_words]
        panel.set_xticks(range(len(words)), words, rotation=60, ha="right")
        panel.set_title(variant, fontsize="small")
    figure.savefig(path)


def panels_of(
    rows: int, columns: int, size: tuple[float, float], **shared: bool
) -> tuple[Any, list[Any]]:
    """A figure and its panels."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
