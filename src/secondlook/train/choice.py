"""The recipe for those who name none: by how much there is to learn from, and in what time."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from secondlook.train.groups import Groups
from secondlook.train.plan import estimate
from secondlook.train.ranking import validate_every
from secondlook.train.recipe import Recipe
from secondlook.train.settings import ListwisePhase

if TYPE_CHECKING:
    from secondlook.train.plan import Plan
    from secondlook.train.recipe import DataSettings
    from secondlook.train.run import Job

_MOST_EPOCHS = 3.0
_MOST_TOKENS = 256
_VALIDATING = 1 / 3
_FEWEST_LOOKS = 3  # at the start, on the way, at the end


def whole_recipe(base: str, data: DataSettings, longest: int) -> Recipe:
    """A warm start, then lists of one positive and five hard negatives, three times over.

    Begun as a bi-encoder it cannot fall far; with few judgments the papers' joint form does.
    `longest` is how many tokens the base can read.
    """
    listwise = {
        "phase": "listwise",
        "epochs": _MOST_EPOCHS,
        "batch": 8,
        "learning_rate": 2e-5,
        "dropout": 0.0,
        "freeze_embeddings": True,
        "patience": 4,
    }
    return Recipe.model_validate(
        {
            "base": base,
            "encode": {"max_length": min(longest, _MOST_TOKENS)},
            "data": data,
            "phases": ({"phase": "warm"}, listwise),
        }
    )


def fitted(job: Job, seconds: float) -> tuple[Recipe, Plan]:
    """The job's recipe with no more epochs and validation than fit, and what it will take.

    Where it is too long, a third of the time is for validation: less often first, then on fewer
    queries. The rest is for learning.
    """
    plan = estimate(job)
    if plan.seconds <= seconds:
        return job.recipe, plan
    warm, listwise = job.recipe.phases
    assert isinstance(listwise, ListwisePhase)
    assert job.data.validate is not None
    known = plan.phases[-1]
    assert known.seconds is not None
    assert known.steps is not None
    assert known.validation_seconds is not None
    validating = seconds * _VALIDATING
    looks = 1 + known.steps / validate_every(listwise, known.steps)  # the first before any step
    once = known.validation_seconds / looks
    looks = min(looks, max(_FEWEST_LOOKS, validating // once))
    queries = len(Groups([job.data.validate])) * min(1, validating / (once * looks))
    share = min(1, (seconds - min(validating, once * looks)) / known.seconds)
    less = {
        "epochs": listwise.epochs * share,
        "validate_every": max(1, ceil(known.steps * share / (looks - 1))),
        "validate_queries": max(1, round(queries)),
    }
    recipe = job.recipe.model_copy(update={"phases": (warm, listwise.model_copy(update=less))})
    return recipe, estimate(replace(job, recipe=recipe))
