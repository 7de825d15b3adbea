"""Score training groups with a teacher model, for knowledge distillation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.progress import as_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.progress import Progress, ProgressCallback
    from secondlook.score.counting import CountingRanker, ScoringCost
    from secondlook.score.export_folder import Engine, Precision
    from secondlook.train.groups import Group
    from secondlook.types import Pair, Scorer

_GROUPS_AT_ONCE = 8  # little to lose by a kill


@dataclass(frozen=True, slots=True)
class TeachResult:
    """What was scored by whom, and where the groups are."""

    output: Path
    queries: int
    teacher: str
    """The teacher's name."""
    cost: ScoringCost
    """Pairs, time and truncated texts; what an interrupted call had scored is not counted."""

    def summary(self) -> str:
        """Queries, pairs, speed and truncated texts."""
        scored = f"{self.queries:,} queries, scored by {self.teacher}"
        return f"{self.output}: {scored}: {self.cost.summary()}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"output": str(self.output)}


def teach(
    groups: str | Path,
    teacher: str | Path | Scorer,
    output: str | Path,
    *,
    backend: Literal["auto", "torch"] | Engine = "auto",
    precision: Literal["auto"] | Precision = "auto",
    replace: bool = False,
    progress: Progress | ProgressCallback | None = None,
) -> TeachResult:
    """Add a teacher model's scores to training groups; the labels do not change.

    `groups` is a file of `mine`. `teacher` is a checkpoint, the address of a rerank API, or any
    object that scores pairs; one that has a `fingerprint` is known again by it when a call resumes.
    After an interruption the same call resumes. Raises Unwritable if the output exists, unless
    `replace` is set.
    """
    from secondlook.data.durable import refuse_to_overwrite
    from secondlook.data.partial import PartialLines
    from secondlook.train.groups import Groups, write_groups

    reported, target, name = as_progress(progress), Path(output), teacher_name(teacher)
    refuse_to_overwrite(target, replace=replace)
    with reported.busy("loading the teacher"):
        given = Groups([Path(groups)])
        scorer = _counted(teacher, backend, precision)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = PartialLines(target, {"groups": given.fingerprint, **scorer.made_of})

    def rows(some: list[Group]) -> list[str]:
        pairs = [(group.query, document) for group in some for document in group.documents]
        scores = iter(scorer.score(pairs).tolist())
        return [json.dumps([next(scores) for _ in group.documents]) for group in some]

    with reported.counting("scoring", "queries", len(given)) as advance:
        partial.fill(given, rows, _GROUPS_AT_ONCE, advance)
    taught = (
        changed(group, teacher=tuple(json.loads(row)))
        for group, row in zip(given, partial.rows(), strict=True)
    )
    count = write_groups(target, taught, about=given.about[0] | {"teacher": name})
    partial.remove()
    return TeachResult(target, count, name, scorer.cost())


def teacher_name(teacher: str | Path | Scorer) -> str:
    """What lineages call it: a hub id, a folder's name, host and model, an object's `name`."""
    from secondlook.score.open_ranker import name_of

    if isinstance(teacher, str | Path):
        return name_of(teacher)
    return str(getattr(teacher, "name", type(teacher).__name__))


def _counted(
    teacher: str | Path | Scorer,
    backend: Literal["auto", "torch"] | Engine,
    precision: Literal["auto"] | Precision,
) -> CountingRanker | _CountingScorer:
    from secondlook.score.counting import CountingRanker

    if isinstance(teacher, str | Path):
        return CountingRanker(str(teacher), backend, precision)
    return _CountingScorer(teacher)


class _CountingScorer:
    """Counts what any scorer scores, in what time and, for a remote ranker, at what cost."""

    def __init__(self, scorer: Scorer) -> None:
        from secondlook.score.remote_ranker import RemoteRanker

        self._scorer, self._pairs, self._seconds = scorer, 0, 0.0
        self._remote = scorer if isinstance(scorer, RemoteRanker) else None
        self._spent_before = self._remote.usage.cost if self._remote else 0.0
        self.made_of: Mapping[str, Any] = {
            "teacher": teacher_name(scorer),
            "fingerprint": str(getattr(scorer, "fingerprint", "")),
        }
        if self._remote:
            self.made_of = self._remote.made_of

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The scorer's scores."""
        from time import monotonic

        began = monotonic()
        scores = self._scorer.score(pairs)
        self._pairs, self._seconds = self._pairs + len(pairs), self._seconds + monotonic() - began
        return scores

    def cost(self) -> ScoringCost:
        """What was scored so far."""
        from secondlook.score.counting import ScoringCost

        price = self._remote.usage.cost - self._spent_before if self._remote else None
        return ScoringCost(self._pairs, self._seconds, price=price)
