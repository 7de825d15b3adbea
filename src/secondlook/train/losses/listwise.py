from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from secondlook.train.settings import RankingPhase

if TYPE_CHECKING:
    from torch import Tensor


class Listwise(RankingPhase):
    """Softmax over a query's documents, negative log-likelihood of the relevant ones.

    Inputs: scores, and grades (above 0 is relevant).
    Formula: mean of -log softmax(s) over relevant documents; with `graded` the sum of
    -w log softmax(s), where w is a document's share of all gains 2^grade - 1.
    Paper: DR-BERT, equations 8 and 9; ListNet (Cao et al. 2007) for `graded`.

    >>> import torch
    >>> scores, grades = torch.tensor([2.0, 1.0, -1.0]), torch.tensor([1, 0, 0])
    >>> round(Listwise().cost(scores, grades).item(), 4)
    0.349
    """

    phase: Literal["listwise"] = "listwise"
    negatives: int = Field(5, ge=1)
    graded: bool = False
    """Whether positives count by 2^grade - 1 instead of all alike."""

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """With equal gains `graded` changes nothing."""
        log_shares = scores.log_softmax(dim=-1)
        if not self.graded:
            return -log_shares[grades > 0].mean()
        gains = 2.0 ** grades.clamp(min=0) - 1
        return -(gains / gains.sum() * log_shares).sum()
