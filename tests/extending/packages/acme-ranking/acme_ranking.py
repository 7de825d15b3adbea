"""A loss, as another package adds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from secondlook.train.settings import RankingPhase

if TYPE_CHECKING:
    from torch import Tensor


class ListMLE(RankingPhase):
    """Likelihood of the ideal order of a query's documents.

    Inputs: scores and grades.
    Formula: mean over the places of logsumexp of the scores from there on, less the score there.
    Paper: Xia et al. 2008, Listwise Approach to Learning to Rank.
    """

    phase: Literal["list_mle"] = "list_mle"
    negatives: int = Field(5, ge=1)
    top: int | None = Field(None, ge=1)
    """How many places count; None is all."""

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        ideal = scores[grades.argsort(descending=True, stable=True)]
        rest = ideal.flip(0).logcumsumexp(0).flip(0)
        return (rest - ideal)[: self.top].mean()
