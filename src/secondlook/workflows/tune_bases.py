"""Which base a tuning starts from: each is tried untrained, on the same validation queries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from secondlook.workflows.tune_stages import Tuning

_TRIED_QUERIES, _TRIED_HITS = 50, 20
"""Validation queries that every base is tried on, and candidates of each."""


def start(tuning: Tuning) -> None:
    """Write the ranker that tuning starts from, untrained: the only base, or the best of several.

    Bases that rank equally well stand in the order they were given.
    """
    untuned = tuning.ranker("untuned")
    if untuned.exists():
        return
    if len(tuning.bases) == 1:
        _make(tuning, tuning.bases[0], untuned)
        return
    figures = _tried(tuning)
    best = max(figures, key=figures.__getitem__)
    shown = ", ".join(f"{base} {figure:.4f}" for base, figure in figures.items())
    tuning.progress.say(
        f"nDCG@10 without training, {_TRIED_HITS} candidates of at most {_TRIED_QUERIES} "
        f"validation queries: {shown}; {best} is the start"
    )
    _keep(tuning, best, figures)


def _tried(tuning: Tuning) -> dict[str, float]:
    """Base → nDCG@10 of its ranking; what an interrupted call had scored is not scored again."""
    from secondlook.data import read_qrels, read_run, write_qrels
    from secondlook.data.splits import some
    from secondlook.evaluate.measures import evaluate
    from secondlook.workflows.rerank import rerank
    from secondlook.workflows.retrieve import retrieve

    (tuning.results / "used").mkdir(exist_ok=True)
    qrels = some(read_qrels(tuning.qrels("dev")), _TRIED_QUERIES)
    write_qrels(tuning.used("tried"), qrels)
    candidates = tuning.run("bm25", "tried")
    retrieve(tuning.index, tuning.queries, candidates, k=_TRIED_HITS, judged=tuning.used("tried"))
    figures = {}
    for number, base in enumerate(tuning.bases, start=1):
        ranker = tuning.ranker(f"base-{number}")
        _make(tuning, base, ranker)
        tuning.export(ranker)
        run = tuning.run(f"base-{number}", "tried")
        if not run.exists():
            given = candidates, tuning.index, tuning.queries, ranker, run
            tuning.progress.say(rerank(*given, progress=tuning.progress).summary())
        figures[base] = evaluate(qrels, read_run(run), ["nDCG@10"]).means["nDCG@10"]
    return figures


def _make(tuning: Tuning, base: str, ranker: Path) -> None:
    from secondlook.train.start import kind_of, make_start

    if ranker.exists():
        return
    with tuning.progress.busy("loading the base model"):
        settings = make_start(base, ranker)
    tuning.progress.say(
        f"{ranker}: begins as the {kind_of(base)} {settings.lineage.base}, "
        f"{settings.encode.max_length} tokens"
    )


def _keep(tuning: Tuning, best: str, figures: dict[str, float]) -> None:
    from shutil import rmtree

    from secondlook.data.durable import write_at_once
    from secondlook.workflows.tune_results import copy

    chosen = {"base": best, "nDCG@10": figures}
    write_at_once(tuning.results / "bases.json", json.dumps(chosen, indent=2))
    copy(tuning.ranker(f"base-{tuning.bases.index(best) + 1}"), tuning.ranker("untuned"))
    for number in range(1, len(tuning.bases) + 1):
        rmtree(tuning.ranker(f"base-{number}"), ignore_errors=True)
