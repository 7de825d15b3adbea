"""The recipe for those who name none: by how much there is to learn from, and in what time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from secondlook.train.plan import estimate
from secondlook.train.recipe import Recipe
from secondlook.train.settings import ListwisePhase

if TYPE_CHECKING:
    from secondlook.train.plan import Plan
    from secondlook.train.recipe import DataSettings
    from secondlook.train.run import Job

_MOST_EPOCHS = 3.0
_MOST_TOKENS = 256


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
    """The job's recipe with no more epochs than fit into the time, and what it will take."""
    plan = estimate(job)
    if plan.seconds <= seconds:
        return job.recipe, plan
    warm, listwise = job.recipe.phases
    assert isinstance(listwise, ListwisePhase)
    fewer = listwise.model_copy(update={"epochs": listwise.epochs * seconds / plan.seconds})
    recipe = job.recipe.model_copy(update={"phases": (warm, fewer)})
    return recipe, estimate(replace(job, recipe=recipe))
