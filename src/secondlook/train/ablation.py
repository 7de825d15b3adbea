"""What each part of a recipe is worth: the recipes without it, and the plain one with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from secondlook.errors import SecondlookError
from secondlook.train.settings import DenoisePhase, RankingPhase, WarmPhase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.train.recipe import Recipe
    from secondlook.train.settings import PhaseSettings

WHOLE, PLAIN = "whole", "plain"
_SWITCHES = {"strm": "STRM", "query_types": "types", "markers": "markers"}
"""The encoder's settings that are parts, and what a table calls them."""


def variants(recipe: Recipe, negatives: Sequence[int] = ()) -> dict[str, Recipe]:
    """Recipes by name, the whole first; of those that are the same only the first.

    `whole − part` for each part; `plain`, the first ranking phase alone without any switch, and
    each other ranking phase likewise; `plain + part` for each part; and the whole with its last
    ranking phase at each of these numbers of negatives. Every one makes as many steps in its
    ranking phases as the whole: a part is not to look good because it brings more training.
    """
    made = {WHOLE: recipe}
    names = _phase_names(recipe)
    trained = [at for at, phase in enumerate(recipe.phases) if isinstance(phase, RankingPhase)]
    if not trained:
        raise SecondlookError("the recipe has no ranking phase (pointwise, listwise, …) to ablate")
    switches = [key for key in _SWITCHES if recipe.encode.get(key)]
    for key in switches:
        made[f"whole − {_SWITCHES[key]}"] = _changed(recipe, off=[key])
    for at, name in names.items():
        rest = [place for place in range(len(recipe.phases)) if place != at]
        made[f"whole − {name}"] = _changed(recipe, keep=rest)
    warm = [at for at, phase in enumerate(recipe.phases) if isinstance(phase, WarmPhase)]
    core = [*warm, trained[0]]
    made[PLAIN] = _changed(recipe, off=switches, keep=core)
    for at in trained[1:]:
        made[f"{names[at]} only"] = _changed(recipe, off=switches, keep=[*warm, at])
    for key in switches:
        others = [other for other in switches if other != key]
        made[f"plain + {_SWITCHES[key]}"] = _changed(recipe, off=others, keep=core)
    for at, name in names.items():
        made[f"plain + {name}"] = _changed(recipe, off=switches, keep=sorted({*core, at}))
    for count in negatives:
        last = recipe.phases[trained[-1]].model_copy(update={"negatives": count})
        phases = [*recipe.phases[: trained[-1]], last, *recipe.phases[trained[-1] + 1 :]]
        made[swept(count)] = recipe.model_copy(update={"phases": tuple(phases)})
    distinct: dict[str, Recipe] = {}
    for name, one in made.items():
        if one not in distinct.values() and any(isinstance(p, RankingPhase) for p in one.phases):
            distinct[name] = one
    return distinct


def swept(negatives: int) -> str:
    """The name of the whole recipe with so many negatives."""
    return f"{negatives} negatives"


def negatives_of(recipe: Recipe) -> int:
    """How many negatives the last ranking phase shows a query with: what a sweep changes."""
    return [phase for phase in recipe.phases if isinstance(phase, RankingPhase)][-1].negatives


def _phase_names(recipe: Recipe) -> dict[int, str]:
    """The phases that are parts, by place; one that comes twice is told by its number."""
    parts = {at: p.phase for at, p in enumerate(recipe.phases) if not isinstance(p, WarmPhase)}
    twice = {name for name in parts.values() if list(parts.values()).count(name) > 1}
    return {at: f"{name} {at + 1}" if name in twice else name for at, name in parts.items()}


def _changed(
    recipe: Recipe, *, off: Sequence[str] = (), keep: Sequence[int] | None = None
) -> Recipe:
    encode = {key: value for key, value in recipe.encode.items() if key not in off}
    phases = recipe.phases if keep is None else tuple(recipe.phases[at] for at in keep)
    changed = {"encode": encode, "phases": _same_budget(recipe.phases, _with_sense(phases))}
    return recipe.model_copy(update=changed)


def _with_sense(phases: Sequence[PhaseSettings]) -> tuple[PhaseSettings, ...]:
    """Without noise reduction by a ranker that has learned nothing, or that none learns from."""

    def sensible(at: int) -> bool:
        taught = any(isinstance(one, RankingPhase | WarmPhase) for one in phases[:at])
        return taught and any(isinstance(one, RankingPhase) for one in phases[at:])

    return tuple(
        phase
        for at, phase in enumerate(phases)
        if not isinstance(phase, DenoisePhase) or sensible(at)
    )


def _same_budget(
    before: Sequence[PhaseSettings], after: Sequence[PhaseSettings]
) -> tuple[PhaseSettings, ...]:
    """The phases, whose ranking ones share the steps (or epochs) of those there were before."""
    had = [phase for phase in before if isinstance(phase, RankingPhase)]
    left = [phase for phase in after if isinstance(phase, RankingPhase)]
    if not left or len(left) == len(had):
        return tuple(after)
    in_steps = [phase.max_steps is not None for phase in had]
    if any(in_steps) and not all(in_steps):
        raise SecondlookError(
            "some ranking phases have `max_steps` and others `epochs`, so a recipe with one less "
            "cannot be given the same budget; write max_steps in all"
        )
    key = "max_steps" if all(in_steps) else "epochs"
    more = sum(getattr(phase, key) for phase in had) / sum(getattr(phase, key) for phase in left)

    def longer(phase: PhaseSettings) -> PhaseSettings:
        if not isinstance(phase, RankingPhase):
            return phase
        value: Any = getattr(phase, key) * more
        return phase.model_copy(update={key: round(value) if key == "max_steps" else value})

    return tuple(map(longer, after))
