"""Losses against a teacher's scores, which the group file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from secondlook.train.losses.pairwise import differences
from secondlook.train.settings import RankingPhase

if TYPE_CHECKING:
    from torch import Tensor


class DistilPhase(RankingPhase):
    """What the losses of the phase `distil` have in common."""

    phase: Literal["distil"] = "distil"
    negatives: int = Field(7, ge=1)
    loss: str
    temperature: float = Field(1.0, gt=0)
    """The teacher's scores are divided by it, for `kl`."""

    needs_teacher: ClassVar[bool] = True


class KLDivergence(DistilPhase):
    """The distribution over a query's documents as the teacher has it.

    Inputs: scores, and the teacher's scores; documents need no grades.
    Formula: KL(softmax(t / temperature) ‖ softmax(s)).
    Paper: Hinton et al. 2015, Distilling the Knowledge in a Neural Network.

    >>> import torch
    >>> scores, grades = torch.tensor([0.0, 0.0]), torch.tensor([1, 0])
    >>> round(KLDivergence().cost(scores, grades, torch.tensor([2.0, 0.0])).item(), 4)
    0.3278
    """

    loss: Literal["kl"] = "kl"

    needs_labels: ClassVar[bool] = False

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """The sum over the documents."""
        from torch.nn import functional

        assert teacher is not None, "a group without a teacher's scores is left out"
        wanted = (teacher / self.temperature).log_softmax(dim=-1)
        given = scores.log_softmax(dim=-1)
        return functional.kl_div(given, wanted, reduction="sum", log_target=True)


class MarginMSE(DistilPhase):
    """Relevant documents as far above the others as the teacher has them.

    Inputs: scores, grades (above 0 is relevant), and the teacher's scores.
    Formula: mean of ((s⁺ - s⁻) - (t⁺ - t⁻))² over all pairs of a relevant and another document.
    Paper: Hofstätter et al. 2020, Improving Efficient Neural Ranking Models with Cross-Architecture
    Knowledge Distillation.

    >>> import torch
    >>> scores, grades = torch.tensor([1.0, 0.0]), torch.tensor([1, 0])
    >>> MarginMSE().cost(scores, grades, torch.tensor([3.0, 0.0])).item()
    4.0
    """

    loss: Literal["margin_mse"] = "margin_mse"

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """The mean over the pairs."""
        from torch.nn import functional

        assert teacher is not None, "a group without a teacher's scores is left out"
        positive = grades > 0
        return functional.mse_loss(differences(scores, positive), differences(teacher, positive))
