"""The losses by name: how wrong the scores of one query's documents are.

A loss is one class: its fields are what a recipe's `[[phases]]` table may set, its `cost` is the
computation. Its name is its `phase`, or `phase.loss` where a phase has several; the first of them
is taken where a recipe names none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.registry import Registry

if TYPE_CHECKING:
    from secondlook.train.settings import RankingPhase

LOSSES: Registry[type[RankingPhase]] = Registry(
    "loss",
    "secondlook.losses",
    {
        "pointwise": "secondlook.train.losses.pointwise:Pointwise",
        "listwise": "secondlook.train.losses.listwise:Listwise",
        "pairwise.hinge": "secondlook.train.losses.pairwise:Hinge",
        "pairwise.ranknet": "secondlook.train.losses.pairwise:RankNet",
        "distil.kl": "secondlook.train.losses.distil:KLDivergence",
        "distil.margin_mse": "secondlook.train.losses.distil:MarginMSE",
    },
)


def register(loss: type[RankingPhase]) -> type[RankingPhase]:
    """Make a loss known by its name; a decorator for its class."""
    LOSSES.add(loss.name(), loss)
    return loss


def variants(phase: str) -> dict[str, str]:
    """The losses of a phase, the default first: the recipe's `loss`, and the name here."""
    names = [name for name in LOSSES.names() if name.split(".")[0] == phase]
    return {name.partition(".")[2]: name for name in names}
