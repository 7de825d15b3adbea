"""Evaluation of runs against relevance judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from secondlook.evaluate.evaluation import DEFAULT_MEASURES
from secondlook.workflows.compare import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from secondlook.data.conversions import QrelsLike, RunLike
    from secondlook.evaluate.evaluation import Evaluation, Evaluations
    from secondlook.evaluate.query_table import QueryTable
    from secondlook.types import Query


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
    require_answers(result, names_of([run], first="the run")[0])
    return result


def evaluate_by(
    qrels: str | Path,
    runs: Sequence[str | Path],
    queries: str | Path,
    by: Literal["length", "type"],
    *,
    measure: str = "RR@10",
    types: str | Path | None = None,
    found_in: str | Path | None = None,
    depth: int = 1000,
    run_format: str = "auto",
    qrels_format: str = "auto",
) -> QueryTable:
    """The measure of each run by query length or by the type of answer that is asked for.

    Types are those of the queries, or what the classifier in the file `types` says. With
    `found_in`, only queries count that have a relevant document in the first `depth` hits of that
    run.
    """
    from secondlook.data import read_qrels, read_queries, read_run
    from secondlook.errors import WrongArgument
    from secondlook.evaluate.breakdown import Facet, every_length
    from secondlook.evaluate.evaluation import labels
    from secondlook.evaluate.query_table import found_by, table_by

    if types is not None and by != "type":
        raise WrongArgument("a classifier of types needs a table by type")
    judgments = read_qrels(qrels, qrels_format)
    asked = [query for query in read_queries(queries) if query.id in judgments]
    if by == "length":
        facet = every_length(asked)
    else:
        known = _types(asked, types)
        if not known:
            raise WrongArgument(
                "no query has a type; give a classifier of types, made with: secondlook types train"
            )
        facet = Facet("query type", known)
    evaluated = evaluate_runs(
        qrels, runs, measures=[measure], run_format=run_format, qrels_format=qrels_format
    ).runs
    per_query = (next(iter(evaluation.per_query.values())) for evaluation in evaluated.values())
    values = dict(zip(labels(evaluated), per_query, strict=True))
    only = None
    if found_in is not None:
        only = found_by(judgments, read_run(found_in, run_format), depth)
    return table_by(values, facet, measure, only)


def _types(queries: Sequence[Query], classifier: str | Path | None) -> dict[str, str]:
    if classifier is None:
        return {query.id: query.type for query in queries if query.type is not None}
    from secondlook.workflows.query_types import predict_types

    predicted = predict_types(classifier, [query.text for query in queries])
    return {query.id: kind for query, kind in zip(queries, predicted, strict=True)}


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
