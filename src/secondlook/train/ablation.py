"""What each part of a recipe is worth: the recipes without it, and the plain one with it.

All score the same number of pairs in training, in steps of the same number of pairs, so a part
cannot look good because it brings more training. All that have noise reduction learn from the same
data: what the whole recipe's own noise reduction left, with the same random seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from secondlook.errors import SecondlookError
from secondlook.train.settings import DenoisePhase, RankingPhase, WarmPhase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from secondlook.train.recipe import Recipe
    from secondlook.train.run import Job
    from secondlook.train.settings import PhaseSettings

WHOLE, PLAIN = "whole", "plain"
_SWITCHES = {"strm": "STRM", "query_types": "types", "markers": "markers"}
"""The encoder's settings that are parts, and what a table calls them."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a ranking phase goes through."""

    steps: int
    pairs_per_query: float


class Measure(Protocol):
    """Tells a phase's work."""

    def __call__(self, phase: RankingPhase) -> Work:
        """By the data, or by the settings alone."""
        ...


@dataclass(frozen=True, slots=True)
class Variant:
    """A recipe to train."""

    recipe: Recipe
    steps: int
    """Of all ranking phases."""
    pairs: int
    """That they score."""
    cleaned: tuple[str, ...] = ()
    """Group files of the whole recipe's noise reduction that it learns from."""


def work_of(job: Job) -> Measure:
    """Counts what the phases find in the job's data."""
    from secondlook.train.ranking import lesson

    def measure(phase: RankingPhase) -> Work:
        plan = lesson(phase, job.data, job.recipe.seed)
        return Work(plan.steps, plan.found.documents / len(plan.found.rows))

    return measure


def variants(
    recipe: Recipe,
    measure: Measure,
    negatives: Sequence[int] = (),
    pairs: Sequence[int] = (),
    *,
    parts: bool = True,
) -> dict[str, Variant]:
    """Recipes by name, the whole first; of those that are the same only the first.

    `whole − part` for each part; `plain`, the first ranking phase alone without any switch, and
    each other ranking phase likewise; `plain + part` for each part; and the whole with its last
    ranking phase at each of these numbers of negatives, and with each of these numbers of pairs to
    learn from. Without `parts` only the whole and the sweeps.
    """
    made = _Maker(recipe, measure)
    every = range(len(recipe.phases))
    made.add(WHOLE, every)
    if parts:
        _add_parts(made, recipe)
    for count in negatives:
        made.add(swept(count), every, negatives=count)
    for count in pairs:
        made.add(sized(count), every, budget=count)
    return made.variants


def _add_parts(made: _Maker, recipe: Recipe) -> None:
    """The whole without each part, and the plain recipe with each."""
    switches = [key for key in _SWITCHES if recipe.encode.get(key)]
    every, names = range(len(recipe.phases)), _phase_names(recipe)
    warm = [at for at in every if isinstance(recipe.phases[at], WarmPhase)]
    core = [*warm, made.trained[0]]
    for key in switches:
        made.add(f"whole − {_SWITCHES[key]}", every, off=[key])
    for at, name in names.items():
        made.add(f"whole − {name}", [place for place in every if place != at])
    made.add(PLAIN, core, off=switches)
    for at in made.trained[1:]:
        made.add(f"{names[at]} only", [*warm, at], off=switches)
    for key in switches:
        others = [other for other in switches if other != key]
        made.add(f"plain + {_SWITCHES[key]}", core, off=others)
    for at, name in names.items():
        if isinstance(recipe.phases[at], DenoisePhase):
            made.add(f"plain + {name}", core, off=switches, cleaned_by=at)
        else:
            made.add(f"plain + {name}", sorted({*core, at}), off=switches)


def swept(negatives: int) -> str:
    """The name of the whole recipe with so many negatives."""
    return f"{negatives} negatives"


def sized(pairs: int) -> str:
    """The name of the whole recipe that learns from so many pairs."""
    return f"{pairs:,} pairs"


def negatives_of(recipe: Recipe) -> int:
    """How many negatives the last ranking phase shows a query with: what a sweep changes."""
    return [phase for phase in recipe.phases if isinstance(phase, RankingPhase)][-1].negatives


def cleaned_file(at: int) -> str:
    """The name of what the noise reduction at this place of the whole recipe leaves."""
    return f"denoised-{at + 1}.parquet"


class _Maker:
    """Makes variants of one recipe."""

    def __init__(self, recipe: Recipe, measure: Measure) -> None:
        self.variants: dict[str, Variant] = {}
        self._seen: list[Recipe] = []
        phases = enumerate(recipe.phases)
        self.trained = [at for at, phase in phases if isinstance(phase, RankingPhase)]
        if not self.trained:
            raise SecondlookError(
                "the recipe has no ranking phase (pointwise, listwise, …) to ablate"
            )
        self._recipe, self._measure = recipe, measure
        self._pairs: dict[int, float] = {}  # of each ranking phase of the whole
        for at in self.trained:
            phase, work = self._work(at)
            self._pairs[at] = work.steps * phase.batch * work.pairs_per_query
            self._per_step = phase.batch * work.pairs_per_query  # the last one's counts for all

    def add(
        self,
        name: str,
        keep: Iterable[int],
        *,
        off: Sequence[str] = (),
        negatives: int | None = None,
        cleaned_by: int | None = None,
        budget: float | None = None,
    ) -> None:
        """The phases at these places, unless nothing is trained or it is there already."""
        phases: dict[int, PhaseSettings] = {at: self._recipe.phases[at] for at in keep}
        ranked = [at for at in phases if at in self.trained]
        if not ranked:
            return
        budget = budget or sum(self._pairs.values())
        steps, pairs = self._share_out(ranked, phases, negatives, budget)
        learning, files = self._cleaned(phases, cleaned_by)
        encode = {key: value for key, value in self._recipe.encode.items() if key not in off}

        def changed(given: Mapping[int, PhaseSettings]) -> Recipe:
            update = {"encode": encode, "phases": tuple(given.values())}
            return self._recipe.model_copy(update=update)

        if (one := changed(learning)) in self._seen:
            return
        self._seen.append(one)
        if name == WHOLE:  # it makes the files that the others learn from
            self.variants[name] = Variant(changed(phases), steps, pairs)
        else:
            self.variants[name] = Variant(one, steps, pairs, files)

    def _share_out(
        self,
        ranked: Sequence[int],
        phases: dict[int, PhaseSettings],
        negatives: int | None,
        budget: float,
    ) -> tuple[int, int]:
        """Give the phases so many pairs, in proportion; the sums of their steps and pairs."""
        more = budget / sum(self._pairs[at] for at in ranked)
        steps, spent = 0, 0.0
        for at in ranked:
            phase, work = self._work(at, negatives if at == self.trained[-1] else None)
            batch = max(1, round(self._per_step / work.pairs_per_query))
            wanted = budget - spent if at == ranked[-1] else self._pairs[at] * more
            own = max(1, round(wanted / (batch * work.pairs_per_query)))
            phases[at] = phase.model_copy(update={"batch": batch, "max_steps": own})
            steps, spent = steps + own, spent + own * batch * work.pairs_per_query
        return steps, round(spent)

    def _cleaned(
        self, phases: Mapping[int, PhaseSettings], by: int | None
    ) -> tuple[dict[int, PhaseSettings], tuple[str, ...]]:
        """The phases without noise reduction, which learn from what the whole recipe's left.

        Those before it learn from the data as they are, as in the whole. With `by` all learn from
        what the noise reduction at that place left.
        """
        denoising = [at for at, phase in phases.items() if isinstance(phase, DenoisePhase)]
        left = {at: phase for at, phase in phases.items() if at not in denoising}
        files: dict[int, str] = {}
        for at in (place for place, phase in left.items() if isinstance(phase, RankingPhase)):
            judges = [place for place in denoising if place < at]
            judge = judges[-1] if judges else by
            if judge is not None:
                files[at] = cleaned_file(judge)
        data = self._recipe.data
        given = tuple(Path(name).name for name in data.train)
        if data.triples is not None:
            given = (*given, data.triples.groups_file(Path()).name)
        for at, phase in left.items():
            if files and isinstance(phase, RankingPhase):
                only = (files[at],) if at in files else phase.only or given
                left[at] = phase.model_copy(update={"only": only})
        return left, tuple(dict.fromkeys(files.values()))

    def _work(self, at: int, negatives: int | None = None) -> tuple[RankingPhase, Work]:
        phase = self._recipe.phases[at]
        assert isinstance(phase, RankingPhase)
        if negatives is not None:
            phase = phase.model_copy(update={"negatives": negatives})
        return phase, self._measure(phase)


def _phase_names(recipe: Recipe) -> Mapping[int, str]:
    """The phases that are parts, by place; one that comes twice is told by its number."""
    parts = {at: p.phase for at, p in enumerate(recipe.phases) if not isinstance(p, WarmPhase)}
    twice = {name for name in parts.values() if list(parts.values()).count(name) > 1}
    return {at: f"{name} {at + 1}" if name in twice else name for at, name in parts.items()}
