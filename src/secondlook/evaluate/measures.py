"""How good rankings are by the judgments: ir-measures computes, mostly through trec_eval."""

from __future__ import annotations

import ast
import re
from subprocess import CalledProcessError
from typing import TYPE_CHECKING

import ir_measures
import numpy as np
from ir_measures.providers.base import NOT_PROVIDED

from secondlook.errors import (
    InvalidRanking,
    MalformedInput,
    SecondlookError,
    UnknownName,
    WrongArgument,
)
from secondlook.evaluate.evaluation import DEFAULT_MEASURES, Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ir_measures import Measure, Metric

    from secondlook.types import Qrels, Ranking

HOW_TO_WRITE = "write it as in nDCG@10 or AP(rel=2)@100"
HITS_AT_ONCE = 100_000
HIGHEST_GRADE = 10_000  # trec_eval counts in a table with a row for every grade up to the highest


def evaluate(
    qrels: Qrels, rankings: Iterable[Ranking], measures: Sequence[str] = DEFAULT_MEASURES
) -> Evaluation:
    """What `trec_eval -c` says of the rankings, which are read once, some queries at a time.

    Scores are compared in single precision, and ties broken by document id, descending, for
    every measure. A judged query without results counts as zero (but NumQ and NumRel count it and
    its relevant documents), and so does one for which a measure has no value (Accuracy, if nothing
    relevant was found).
    """
    if isinstance(measures, str) or not measures:
        raise SecondlookError(f"measures are a list, as ['nDCG@10', 'RR@10'], not {measures!r}")
    tally = Tally(qrels, [parse_measure(spelling) for spelling in measures])
    for ranking in rankings:
        tally.add(ranking)
    return tally.result()


def require_answers(evaluation: Evaluation, run: str) -> None:
    """Raises SecondlookError where the run has no results for any judged query."""
    if evaluation.missing < evaluation.judged:
        return
    if not evaluation.unjudged:
        raise SecondlookError(f"{run} is empty: it has no results for any query")
    raise SecondlookError(
        f"{run} has results for {evaluation.unjudged:,} queries, but for none of the "
        f"{evaluation.judged:,} judged ones; give the judgments of its queries, or a run of the "
        "judged ones"
    )


def refuse_strangers(qrels: Qrels, rankings: Iterable[Ranking]) -> None:
    """Raises SecondlookError where not one of the rankings is of a judged query."""
    if not any(ranking.query_id in qrels for ranking in rankings):
        raise SecondlookError(
            f"none of the {len(qrels):,} judged queries is in the run; give the judgments of its "
            "queries, or a run of the judged ones"
        )


def parse_measure(spelling: str) -> Measure:
    """The measure that ir-measures spells so: `nDCG@10`, `AP(rel=2)@100`.

    Raises UnknownName, with the nearest name, WrongArgument if it cannot be read, or
    SecondlookError if it cannot be computed: that is tried here, before anyone reads a run of
    millions of lines for it.
    """
    known = ir_measures.measures.registry
    found = re.fullmatch(r"(\w+)(?:\((.*)\))?(?:@(\S+))?", spelling)
    if not found or found[1] not in known:
        raise UnknownName("measure", spelling, _near_spellings(spelling))
    name, inside, at = found.groups()
    try:
        given = _literals(inside or "")
        if at is not None:
            given[known[name].AT_PARAM] = ast.literal_eval(at)
    except (SyntaxError, ValueError) as error:
        raise WrongArgument(f"measure {spelling!r} cannot be read; {HOW_TO_WRITE}") from error
    measure: Measure = known[name](**given)
    _check_parameters(measure, spelling)
    _calculate([measure], {"1": {"a": 1, "b": 0}}, {"1": {"a": 2.0, "b": 1.0}})
    return measure


def depth_of(spelling: str) -> int | None:
    """How many hits of a query the measure looks at, such as 10; None where it looks at all.

    With `judged_only` it does: its ten are found after the unjudged hits are left out.
    """
    given = parse_measure(spelling).params
    return None if given.get("judged_only") else given.get("cutoff")


def _literals(parameters: str) -> dict[str, object]:
    """`rel=2, judged_only=True` as a mapping.

    ir-measures 0.4.3 has a parser of its own, but it reads `ast.Num`, of which Python 3.12 warns
    and which 3.14 has no more (its issue 80; mended, not yet released).
    """
    call = ast.parse(f"measure({parameters})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or not all(key.arg for key in call.keywords):
        raise ValueError(parameters)
    return {str(key.arg): ast.literal_eval(key.value) for key in call.keywords}


def _check_parameters(measure: Measure, spelling: str) -> None:
    for key in measure.params:
        if key not in measure.SUPPORTED_PARAMS:
            raise UnknownName(f"parameter of {measure.NAME}", key, measure.SUPPORTED_PARAMS)
    for key, info in measure.SUPPORTED_PARAMS.items():
        value = measure.params.get(key, NOT_PROVIDED)
        valid = info.validate(value)  # type: ignore[no-untyped-call]  # theirs to annotate
        if valid and key == "cutoff" and value is not NOT_PROVIDED:
            valid = value >= 1  # trec_eval would abort the process
        if not valid:
            wanted = info.choices if isinstance(info.choices, list) else info.dtype.__name__
            raise WrongArgument(
                f"measure {spelling!r} needs a valid {key} ({info.desc}; {wanted}): {HOW_TO_WRITE}"
            )


def _near_spellings(spelling: str) -> list[str]:
    """Every measure, with the cutoff that `spelling` seems to ask for: `ndcg_cut_10`, `mrr10`."""
    digits = re.search(r"\d+$", spelling)
    return [
        f"{name}@{digits[0]}" if digits and "cutoff" in measure.SUPPORTED_PARAMS else name
        for name, measure in ir_measures.measures.registry.items()
    ]


class Tally:
    """The values so far, and the rankings that wait to be computed together."""

    def __init__(self, qrels: Qrels, measures: list[Measure]) -> None:
        self.judgments = {
            query_id: _countable(query_id, grades) for query_id, grades in qrels.items() if grades
        }
        if not self.judgments:
            raise MalformedInput("the judgments", None, "there are none; is it the right file?")
        self.values: dict[Measure, dict[str, float]] = {measure: {} for measure in measures}
        self.found: set[str] = set()
        """Judged queries that have results."""
        self.unjudged = 0
        self.waiting: dict[str, dict[str, float]] = {}
        self.hits_waiting = 0

    def add(self, ranking: Ranking) -> None:
        """Take one ranking; those of queries without judgments are only counted."""
        if ranking.query_id not in self.judgments:
            self.unjudged += 1
            return
        if ranking.query_id in self.found:
            raise InvalidRanking(
                f"query {ranking.query_id!r} is ranked twice; a run has one ranking per query"
            )
        if not ranking.hits:  # trec_eval cannot be shown an empty ranking: it crashes
            return
        self.found.add(ranking.query_id)
        self.waiting[ranking.query_id] = _scores_without_ties(ranking)
        self.hits_waiting += len(ranking.hits)
        if self.hits_waiting >= HITS_AT_ONCE:
            self._compute()

    def result(self) -> Evaluation:
        """What all rankings so far come to."""
        self._compute()
        means, per_query = {}, {}
        for measure, known in self.values.items():
            values = {
                query_id: known.get(query_id, _without_results(measure, grades))
                for query_id, grades in self.judgments.items()
            }
            aggregator = measure.aggregator()
            for value in values.values():
                aggregator.add(value)
            means[str(measure)] = float(aggregator.result())
            per_query[str(measure)] = values
        missing = len(self.judgments) - len(self.found)
        return Evaluation(means, per_query, len(self.judgments), missing, self.unjudged)

    def _compute(self) -> None:
        """Settle the rankings that wait."""
        if self.waiting:
            judged = {query_id: self.judgments[query_id] for query_id in self.waiting}
            for metric in _calculate(list(self.values), judged, self.waiting):
                self.values[metric.measure][metric.query_id] = float(metric.value)
        self.waiting, self.hits_waiting = {}, 0


def _without_results(measure: Measure, grades: Mapping[str, int]) -> float:
    """What a judged query is worth by `trec_eval -c` if the run has no results for it."""
    if measure.NAME == "NumQ":
        return 1.0
    if measure.NAME == "NumRel":
        return float(sum(grade >= measure["rel"] for grade in grades.values()))
    return 0.0


def _calculate(
    measures: list[Measure], judgments: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> list[Metric]:
    try:
        return list(ir_measures.iter_calc(measures, judgments, run))
    except (ArithmeticError, CalledProcessError, KeyError, TypeError, ValueError) as error:
        names = ", ".join(str(measure) for measure in measures)
        reason = " ".join(str(error).split())
        raise SecondlookError(f"ir-measures could not compute {names}: {reason}") from error


def _countable(query_id: str, grades: Mapping[str, int]) -> dict[str, int]:
    """The grades in a form trec_eval can take: it crashes, or never ends, if all are negative."""
    _refuse_nul([query_id, *grades])
    lowest, highest = min(grades.values()), max(grades.values())
    odd = highest if highest > HIGHEST_GRADE else lowest
    if abs(odd) > HIGHEST_GRADE:
        raise MalformedInput(
            "the judgments",
            None,
            f"query {query_id!r} has a grade of {odd}, beyond {HIGHEST_GRADE}; are the columns in "
            "another order?",
        )
    return dict(grades) if highest >= 0 else dict.fromkeys(grades, 0)


def _refuse_nul(ids: Iterable[str]) -> None:
    for name in ids:
        if "\0" in name:
            raise MalformedInput(
                "judgments or run", None, f"the id {name!r} holds a NUL, where trec_eval cuts it"
            )


def single_precision(ranking: Ranking) -> list[float]:
    """The scores as trec_eval keeps them."""
    with np.errstate(over="ignore"):  # beyond single precision is infinite, in trec_eval too
        scores = np.array([hit.score for hit in ranking.hits], dtype=np.float32)
    return [float(score) for score in scores]


def _scores_without_ties(ranking: Ranking) -> dict[str, float]:
    """Scores that put the documents into trec_eval's order, whatever a provider does with ties.

    trec_eval keeps scores in single precision, so that what differs only beyond it is a tie; and
    not all providers break ties alike: that of RR@10 takes ids in ascending order.
    """
    scores = single_precision(ranking)
    documents = [hit.doc_id for hit in ranking.hits]
    _refuse_nul(documents)
    ordered = sorted(zip(scores, documents, strict=True), reverse=True)
    return {doc_id: float(len(ordered) - above) for above, (_, doc_id) in enumerate(ordered)}
