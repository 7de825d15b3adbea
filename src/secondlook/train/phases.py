"""The phases by name, each imported only when it runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondlook.model.network import Model
    from secondlook.train.phase import Outcome, Place, TrainData
    from secondlook.train.settings import PhaseSettings

_MODULES = {
    "adapt": "secondlook.train.adapt",
    "frozen": "secondlook.train.frozen",
    "denoise": "secondlook.train.denoise",
    "pointwise": "secondlook.train.ranking",
    "listwise": "secondlook.train.ranking",
    "pairwise": "secondlook.train.ranking",
    "distil": "secondlook.train.ranking",
}
"""Where each phase's `run` is."""

ALONE = frozenset({"denoise"})
"""Those that the first of several processes runs while the others wait."""


def run_phase(settings: PhaseSettings, start: Model, data: TrainData, place: Place) -> Outcome:
    """Run a phase, or continue it."""
    outcome: Outcome = import_module(_MODULES[settings.phase]).run(settings, start, data, place)
    return outcome
