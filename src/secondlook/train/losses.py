"""What a group's scores cost, and so what each phase learns.

Every loss is one number per group. Scores are [documents] of one query; `positive` says which of
them are relevant. All are computed in the precision of the scores, which the networks give in
float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def pointwise(scores: Tensor, positive: Tensor) -> Tensor:
    """Cross-entropy of each pair by itself, their mean.

    DR-BERT (equation 5) and monoBERT take a softmax over two classes; with one logit, which is
    the difference of the two, binary cross-entropy is the same number.
    """
    return functional.binary_cross_entropy_with_logits(scores, positive.to(scores.dtype))


def listwise(scores: Tensor, positive: Tensor) -> Tensor:
    """DR-BERT, equations 8 and 9: softmax over the group, mean -log of the positives' shares."""
    return -functional.log_softmax(scores, dim=-1)[positive].mean()


def graded_listwise(scores: Tensor, gains: Tensor) -> Tensor:
    """Listwise, where a document is to have its share of all gains; with equal gains the same."""
    return -(gains / gains.sum() * functional.log_softmax(scores, dim=-1)).sum()


def hinge(scores: Tensor, positive: Tensor, margin: float = 1.0) -> Tensor:
    """CCNU, section 2.1: max(0, margin - s⁺ + s⁻), the mean over all pairs of the group."""
    return functional.relu(margin - _differences(scores, positive)).mean()


def ranknet(scores: Tensor, positive: Tensor) -> Tensor:
    """RankNet: log(1 + exp(s⁻ - s⁺)), the mean over all pairs of the group."""
    return functional.softplus(-_differences(scores, positive)).mean()


def margin_mse(scores: Tensor, positive: Tensor, teacher: Tensor) -> Tensor:
    """Margin-MSE (Hofstätter et al. 2020): s⁺ - s⁻ is to be what it is for the teacher."""
    return functional.mse_loss(_differences(scores, positive), _differences(teacher, positive))


def kl(scores: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """KL(teacher ‖ student) between the softmaxes over the group."""
    wanted = functional.log_softmax(teacher / temperature, dim=-1)
    given = functional.log_softmax(scores, dim=-1)
    return functional.kl_div(given, wanted, reduction="sum", log_target=True)


def _differences(scores: Tensor, positive: Tensor) -> Tensor:
    """How far each positive is above each negative: [positives, negatives]."""
    return scores[positive][:, None] - scores[~positive][None, :]
