"""`tune` with cross-attention and without it, from the same bi-encoder; a part of vectors.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from secondlook.data import read_qrels, read_run
from secondlook.evaluate.measures import evaluate
from secondlook.evaluate.significance import t_test
from secondlook.model.checkpoint import open_checkpoint
from secondlook.score.warm import make_warm
from secondlook.workflows.index import build_index
from vectors_bench import Bench, file_of, gain

_TOKENS = 128
"""Of each text: half of what `tune` reads of a bare bi-encoder, so that more is trained."""
_NOT_SHIPPED = 3
_MEASURE = "nDCG@10"


def attention(bench: Bench, name: str, seed: int) -> dict[str, Any]:
    """nDCG@10 on the test queries, gates by layer, and the form that `tune` chose."""
    data = bench.data(name)
    index = bench.work / f"{name}.plain.index"
    if not index.exists():
        build_index(file_of(data, "corpus"), index)
    figures: dict[str, Any] = {"minutes": bench.minutes}
    for form, separate in (("with", 0), ("without", "all")):
        base = bench.work / f"{form}.attention.ranker"
        if not base.exists():
            settings: Any = {"separate_layers": separate, "encode": {"max_length": _TOKENS}}
            make_warm(bench.base, base, **settings)
        output = bench.work / f"{name}.{form}.{seed}"
        if not (output / "verdict.json").exists():
            command = [sys.executable, "-m", "secondlook", "tune", str(data), "-o", str(output)]
            command += ["--base", str(base), "--seed", str(seed), "--index", str(index)]
            command += ["--minutes", str(bench.minutes), "--device", "cpu"]
            code = subprocess.run(command, stdout=sys.stderr, check=False).returncode
            if code not in (0, _NOT_SHIPPED):
                raise RuntimeError(f"{' '.join(command)} ended with {code}")
        figures[form] = row(output)
    stages = [bench.work / f"{name}.{form}.{seed}" / "stages" for form in ("with", "without")]
    return figures | {"on the same queries": compared(*stages)}


def compared(attends: Path, separate: Path) -> dict[str, Any]:
    """The trained rankers, not fused, over queries that both calls ranked; the last one's gain.

    `shut` is the ranker trained with cross-attention, used without. What is tested is what was
    chosen.
    """
    validated = {
        "with": attends / "dev.trained.trec.gz",
        "with, shut": attends / "dev.separate.trec.gz",
        "without": separate / "dev.trained.trec.gz",
    }
    tested = {
        "untuned": attends / "tested.untuned.trec.gz",
        "with, chosen": attends / f"tested.{_chosen(attends)['weights']}.trec.gz",
        "without, chosen": separate / f"tested.{_chosen(separate)['weights']}.trec.gz",
    }
    return {
        "validation": differences(
            validated, [one / "used" / "dev.tsv" for one in (attends, separate)]
        ),
        "test": differences(tested, [one / "used" / "tested.tsv" for one in (attends, separate)]),
    }


def differences(runs: dict[str, Path], judged: list[Path]) -> dict[str, Any]:
    """Means over the queries that all of these judge, and how much more the last run has."""
    first, second = (read_qrels(path) for path in judged)
    common = {query: first[query] for query in first if query in second}
    values = {}
    for name, path in runs.items():
        if path.exists():  # what was not trained was not ranked
            found = evaluate(common, list(read_run(path)), [_MEASURE]).per_query[_MEASURE]
            values[name] = np.array([found[query] for query in common])
    figures: dict[str, Any] = {"queries": len(common)}
    figures |= {name: own.mean() for name, own in values.items()}
    *others, last = values
    for other in others:
        more = values[last] - values[other]
        figures[f"{last} - {other}"] = gain(more) | {"p": t_test(more)}
    return figures


def _chosen(stages: Path) -> dict[str, Any]:
    """What `tune` took, and the figures that decided."""
    chosen: dict[str, Any] = json.loads((stages / "chosen.json").read_text("utf-8"))
    return chosen


def row(output: Path) -> dict[str, Any]:
    """What one tuning came to."""
    told = json.loads((output / "verdict.json").read_text("utf-8"))
    chosen = _chosen(output / "stages")
    last = {run["run"]: run["differences"][0] for run in told["runs"]}["tuned"]
    gain = told["against_untuned"]
    return {
        "bm25": last["base"],
        "tuned": last["new"],
        "p against bm25": last["adjusted"],
        "p against untuned": gain and gain["runs"][0]["differences"][0]["adjusted"],
        "validation nDCG@10": chosen["nDCG@10"],
        "chosen": chosen["weights"],
        "separate layers": _separate_layers(output / "stages"),
        "gates": _gates(output / "stages"),
    }


def _separate_layers(stages: Path) -> int:
    warm = open_checkpoint(stages / "tuned").settings.warm
    assert warm is not None
    return warm.separate_layers


def _gates(stages: Path) -> dict[str, float]:
    """How far the trained ranker's gates are open, layer by layer."""
    from secondlook.model.network import load_model
    from secondlook.train.trainer import gates_of

    trained = stages / "trained"
    return gates_of(load_model(trained).network) if trained.exists() else {}
