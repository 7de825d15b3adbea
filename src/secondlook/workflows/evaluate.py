"""Evaluation of runs against relevance judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.evaluate.evaluation import DEFAULT_MEASURES
from secondlook.workflows.compare import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from secondlook.data.conversions import QrelsLike, RunLike
    from secondlook.evaluate.evaluation import Evaluation, Evaluations


def evaluate(
    qrels: QrelsLike,
    run: RunLike,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    run_format: str = "auto",
    qrels_format: str = "auto",
) -> Evaluation:
    """Evaluate a run against relevance judgments, as `trec_eval -c` does.

    Judgments and run are files, dicts, DataFrames or objects; measures are in the notation of
    ir-measures. Judged queries without results count as zero.

    >>> import secondlook as sl
    >>> qrels = {"q1": {"d1": 1}}
    >>> sl.evaluate_run(qrels, {"q1": {"d1": 1.0, "d2": 2.0}}, measures=["RR@10"]).means
    {'RR@10': 0.5}
    """
    from secondlook.data.conversions import load_qrels, rankings_of
    from secondlook.evaluate.measures import evaluate as measure
    from secondlook.evaluate.measures import require_answers

    result = measure(load_qrels(qrels, qrels_format), rankings_of(run, run_format), measures)
    require_answers(result, names_of([run])[0])
    return result


def evaluate_runs(
    qrels: str | Path,
    runs: Sequence[str | Path],
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    run_format: str = "auto",
    qrels_format: str = "auto",
) -> Evaluations:
    """Evaluate several run files against the same judgments, for one table."""
    from secondlook.data import read_qrels, read_run
    from secondlook.evaluate.evaluation import Evaluations
    from secondlook.evaluate.measures import evaluate as measure
    from secondlook.evaluate.measures import require_answers

    judgments = read_qrels(qrels, qrels_format)
    evaluations = {
        str(run): measure(judgments, read_run(run, run_format), measures) for run in runs
    }
    for run, evaluation in evaluations.items():
        require_answers(evaluation, run)
    return Evaluations(str(qrels), evaluations)
