from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from secondlook.train.settings import RankingPhase

if TYPE_CHECKING:
    from torch import Tensor


class Pointwise(RankingPhase):
    """Binary cross-entropy of each query-document pair by itself.

    Inputs: scores, and grades (above 0 is relevant).
    Formula: mean of -log σ(s) over relevant documents and -log(1 - σ(s)) over the others.
    Paper: Nogueira and Cho 2019 (monoBERT), DR-BERT, equation 5; both take a softmax over two
    classes, which is the same number: one logit is the difference of their two.

    >>> import torch
    >>> scores, grades = torch.tensor([2.0, -1.0]), torch.tensor([1, 0])
    >>> round(Pointwise().cost(scores, grades).item(), 4)
    0.2201
    """

    phase: Literal["pointwise"] = "pointwise"

    learns_log_odds: ClassVar[bool] = True

    def cost(self, scores: Tensor, grades: Tensor, teacher: Tensor | None = None) -> Tensor:
        """The mean over the documents."""
        from torch.nn import functional

        return functional.binary_cross_entropy_with_logits(scores, (grades > 0).to(scores.dtype))
