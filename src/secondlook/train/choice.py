"""The recipe for those who name none: by how much there is to learn from, and in what time."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING

from secondlook.errors import SecondlookError
from secondlook.train.estimate import estimate, validations
from secondlook.train.groups import Groups
from secondlook.train.losses.listwise import Listwise
from secondlook.train.recipe import Recipe
from secondlook.train.start import first_settings

if TYPE_CHECKING:
    from pathlib import Path

    from secondlook.train.estimate import Plan
    from secondlook.train.recipe import DataSettings
    from secondlook.train.run import Job

_MOST_EPOCHS = 3.0
_MOST_LOOKS = 3
"""Validations of a training that is cut short, beside that of the start."""
_FEWEST_QUERIES = 50
FEWEST_STEPS = 20
"""What fewer change, no validation could tell from noise (docs/results/tune.md)."""


def whole_recipe(base: str | Path, data: DataSettings, seed: int = 7) -> Recipe:
    """Lists of one positive and five hard negatives, three times over.

    A bi-encoder becomes a ranker of the warm form first: begun so it cannot fall far, and with few
    judgments a new head on top of it does. A cross-encoder has its head already.
    """
    listwise = {
        "phase": "listwise",
        "epochs": _MOST_EPOCHS,
        "batch": 8,
        "learning_rate": 2e-5,
        "fit_score_scale": True,
        "dropout": 0.0,
        "freeze_embeddings": True,
        "patience": 4,
    }
    started = first_settings(base)
    phases = (*started["phases"], listwise)
    return Recipe.model_validate(started | {"seed": seed, "data": data, "phases": phases})


class TooLittleTime(SecondlookError):
    """A training that fits into the time would be too short to be of use."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too little time to train here: it takes {seconds:,.0f} seconds at least")
        self.seconds = seconds
        """What the shortest training of use takes."""


def fitted(job: Job, seconds: float) -> tuple[Recipe, Plan]:
    """The job's recipe with no more steps than fit into the time, and what it will take.

    The time includes the few steps that are tried here. Raises TooLittleTime where fewer steps
    fit than `FEWEST_STEPS`, or than see each query once, where queries are few.

    At most a quarter of the time is for validation: on fewer queries if need be, but not on so few
    that their measure says nothing, then less often, but at the end in any case.
    """
    began = monotonic()
    plan = estimate(job)
    seconds -= monotonic() - began
    whole = plan.phases[-1]
    if plan.seconds <= seconds:
        return job.recipe, plan
    assert job.data.validate is not None, "whole_recipe validates"
    *before, listwise = job.recipe.phases
    assert isinstance(listwise, Listwise)
    assert whole.steps
    assert whole.seconds
    assert whole.validation_seconds is not None
    step = whole.seconds / whole.steps
    queries = len(Groups([job.data.validate]))
    query = whole.validation_seconds / validations(listwise, whole.steps) / queries
    epoch = ceil(len(Groups(job.data.train)) / listwise.batch)
    fewest = min(FEWEST_STEPS, epoch, whole.steps)
    shortest = fewest * step + 2 * min(queries, _FEWEST_QUERIES) * query
    if seconds < shortest:
        raise TooLittleTime(shortest)
    affordable = int(seconds / 4 / query) if query else queries * (1 + _MOST_LOOKS)
    looks = min(_MOST_LOOKS, max(1, affordable // min(queries, _FEWEST_QUERIES) - 1))
    validated = min(queries, max(_FEWEST_QUERIES, affordable // (1 + looks)))
    validation = (1 + looks) * validated * query
    steps = min(whole.steps, max(fewest, looks, int((seconds - validation) / step)))
    fewer = listwise.model_copy(
        update={
            "max_steps": steps,
            "validate_every": ceil(steps / looks),
            "validate_queries": validated,
        }
    )
    shorter = replace(
        whole,
        steps=steps,
        pairs=round((whole.pairs or 0) * steps / whole.steps),
        tokens=round((whole.tokens or 0) * steps / whole.steps),
        seconds=steps * step,
        validation_seconds=validations(fewer, steps) * validated * query,
    )
    recipe = job.recipe.model_copy(update={"phases": (*before, fewer)})
    return recipe, replace(plan, phases=(*plan.phases[:-1], shorter))
