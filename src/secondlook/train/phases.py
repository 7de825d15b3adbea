"""The phases by name, each imported only when it runs; the losses are phases, too."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

from secondlook.errors import UnknownName
from secondlook.registry import Registry
from secondlook.train.losses import LOSSES, variants
from secondlook.train.settings import PhaseSettings

if TYPE_CHECKING:
    from secondlook.model.network import Model
    from secondlook.train.phase import Outcome, Place, TrainData

OTHERS: Registry[type[PhaseSettings]] = Registry(
    "phase",
    "secondlook.phases",
    {
        "warm": "secondlook.train.settings:WarmPhase",
        "adapt": "secondlook.train.settings:AdaptPhase",
        "denoise": "secondlook.train.settings:DenoisePhase",
        "frozen": "secondlook.train.frozen_settings:FrozenPhase",
    },
)
"""The phases that are no loss."""

ALONE = frozenset({"denoise"})
"""Those that the first of several processes runs while the others wait."""


def phase_names() -> tuple[str, ...]:
    """Every phase that a recipe can name."""
    losses = [name.split(".")[0] for name in LOSSES.names()]
    return tuple(dict.fromkeys([*OTHERS.names(), *losses]))


def settings_of(phase: str, loss: str | None = None) -> type[PhaseSettings]:
    """The settings of a phase, and of its loss where it has several; raises UnknownName."""
    if phase in OTHERS:
        return OTHERS[phase]
    if not (losses := variants(phase)):
        raise UnknownName("phase", phase, phase_names())
    if loss is None or "" in losses:
        return LOSSES[next(iter(losses.values()))]
    if loss not in losses:
        raise UnknownName(f"loss of the phase {phase!r}", loss, losses)
    return LOSSES[losses[loss]]


def _typed(given: Any) -> Any:  # noqa: ANN401 - whatever the recipe holds
    """A table of a recipe as the settings of the phase it names."""
    if not isinstance(given, dict):
        return given
    if not isinstance(name := given.get("phase"), str):
        raise ValueError(f'name the phase: phase = "{phase_names()[0]}"')
    return settings_of(name, given.get("loss")).model_validate(given)


Phase = Annotated[SerializeAsAny[PhaseSettings], BeforeValidator(_typed)]
"""A phase of a recipe, by its name; those registered later are known as soon as they are."""


def run_phase(settings: PhaseSettings, start: Model, data: TrainData, place: Place) -> Outcome:
    """Run a phase, or continue it."""
    outcome: Outcome = import_module(settings.module).run(settings, start, data, place)
    return outcome
