"""Losses of a relevant and an irrelevant document of one query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from secondlook.train.settings import RankingPhase

if TYPE_CHECKING:
    from torch import Tensor


class PairwisePhase(RankingPhase):
    """What the losses of the phase `pairwise` have in common."""

    phase: Literal["pairwise"] = "pairwise"
    loss: str
    margin: float = Field(1.0, gt=0)
    """Of the hinge; `ranknet` has none."""


class Hinge(PairwisePhase):
    """Every relevant document at least `margin` above every other one of its query.

    Inputs: scores, and grades (above 0 is relevant).
    Formula: mean of max(0, margin - s⁺ + s⁻) over all pairs of a relevant and another document.
    Paper: CCNU at the TREC 2019 Deep Learning track, section 2.1.

    >>> import torch
    >>> scores, grades = torch.tensor([2.0, 1.5, 0.0]), torch.tensor([1, 0, 0])
    >>> Hinge(margin=1.0).cost(scores, grades).item()
    0.25
    """

    loss: Literal["hinge"] = "hinge"

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """The mean over the pairs."""
        return (self.margin - differences(scores, grades > 0)).relu().mean()


class RankNet(PairwisePhase):
    """Every relevant document above every other one of its query, the further the better.

    Inputs: scores, and grades (above 0 is relevant).
    Formula: mean of log(1 + exp(s⁻ - s⁺)) over all pairs of a relevant and another document.
    Paper: Burges et al. 2005, Learning to Rank using Gradient Descent.

    >>> import torch
    >>> scores, grades = torch.tensor([1.0, 1.0, -1.0]), torch.tensor([1, 0, 0])
    >>> round(RankNet().cost(scores, grades).item(), 4)
    0.41
    """

    loss: Literal["ranknet"] = "ranknet"

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """The mean over the pairs."""
        from torch.nn import functional

        return functional.softplus(-differences(scores, grades > 0)).mean()


def differences(scores: Tensor, positive: Tensor) -> Tensor:
    """How far each positive is above each negative: [positives, negatives]."""
    return scores[positive][:, None] - scores[~positive][None, :]
