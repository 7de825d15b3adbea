"""How good the ranker is on the user's own measure: re-rank the validation groups and evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from secondlook.evaluate.measures import evaluate, parse_measure
from secondlook.train import processes
from secondlook.types import Hit, Ranking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.evaluate.evaluation import Evaluation
    from secondlook.train.groups import Group
    from secondlook.types import Pair

_PAIRS_AT_ONCE = 2048


class Scores(Protocol):
    """What can score pairs: a Ranker."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """One score per pair."""
        ...


@dataclass(frozen=True, slots=True)
class Validated:
    """The measure of one set of weights."""

    mean: float
    per_query: Mapping[str, float]


class Validation:
    """The measure over some queries' groups.

    Judged documents that no group holds count as missed, so the figure is that of the whole
    first-stage run. Groups without a judgment say nothing and are left out.
    """

    def __init__(self, groups: Sequence[Group], measure: str, limit: int | None = None) -> None:
        self.measure = str(parse_measure(measure))
        some = (groups[at] for at in range(len(groups)))
        judged = (group for group in some if group.missed or max(group.measured, default=-1) >= 0)
        self._groups: list[Group] = []
        for group in judged:
            self._groups.append(group)
            if limit is not None and len(self._groups) == limit:
                break
        self._qrels = {group.query.id: _grades(group) for group in self._groups}
        self._scored = [group for group in self._groups if max(group.measured, default=0) > 0]

    def __len__(self) -> int:
        """How many pairs are scored for the measure."""
        return sum(len(group.documents) for group in self._scored)

    def first(self, queries: int) -> Validation:
        """Of the first queries that are scored."""
        return Validation(self._scored[:queries], self.measure)

    def __call__(self, ranker: Scores) -> float:
        """The mean of the measure."""
        return self._evaluated(ranker).means[self.measure]

    def per_query(self, ranker: Scores) -> dict[str, float]:
        """Query id → the measure."""
        return dict(self.of(ranker).per_query)

    def of(self, ranker: Scores) -> Validated:
        """The mean of the measure, and the measure of each query."""
        evaluation = self._evaluated(ranker)
        return Validated(evaluation.means[self.measure], dict(evaluation.per_query[self.measure]))

    def _evaluated(self, ranker: Scores) -> Evaluation:
        """Where no candidate is relevant every order is worth the same: none is scored."""
        made = {ranking.query_id: ranking for ranking in _ranked(self._scored, ranker)}
        unranked = (Ranking.of(group.query.id, _unscored(group)) for group in self._groups)
        return self.measured([made.get(as_given.query_id, as_given) for as_given in unranked])

    def measured(self, rankings: Sequence[Ranking]) -> Evaluation:
        """The measure of rankings that were made before."""
        return evaluate(self._qrels, rankings, [self.measure])

    def rankings(self, ranker: Scores) -> list[Ranking]:
        """Each query's documents in the ranker's order."""
        return _ranked(self._groups, ranker)


def _ranked(groups: Sequence[Group], ranker: Scores) -> list[Ranking]:
    """Their documents in the ranker's order; several processes score a share each."""
    pairs = [(group.query, one) for group in groups for one in group.documents]
    own = pairs[processes.rank() :: processes.count()]
    made: list[float] = []
    for start in range(0, len(own), _PAIRS_AT_ONCE):
        made += ranker.score(own[start : start + _PAIRS_AT_ONCE]).tolist()
    scores = [0.0] * len(pairs)
    for rank, share in enumerate(processes.gather(made)):
        scores[rank :: processes.count()] = share
    given = iter(scores)
    return [
        Ranking.of(group.query.id, [Hit(one.id, next(given)) for one in group.documents])
        for group in groups
    ]


def _unscored(group: Group) -> list[Hit]:
    return [Hit(one.id, float(-place)) for place, one in enumerate(group.documents)]


def _grades(group: Group) -> dict[str, int]:
    judged = {
        document.id: label
        for document, label in zip(group.documents, group.measured, strict=True)
        if label >= 0
    }
    missed = {f"missed {number}": grade for number, grade in enumerate(group.missed)}
    return judged | missed
