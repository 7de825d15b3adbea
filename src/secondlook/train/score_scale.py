"""The scale on which a loss reads the scores of a ranker that is trained further.

A softmax reads differences of scores as log-odds. A bi-encoder's cosines times 40, or another
library's logits, are some other scale: then the gradient that all lists share says "make all
differences larger" or "smaller", and Adam, whose steps have one size, spends the first steps on
that instead of on the order. At the factor found here that part of the gradient is zero.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import torch

from secondlook.data.durable import write_at_once

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from torch import Tensor

    from secondlook.train.draw import Drawn
    from secondlook.train.settings import RankingPhase
    from secondlook.types import Scorer

_QUERIES = 32
_FACTORS = [2 ** (step / 4) for step in range(-20, 21)]  # 1/32 to 32
_WRONG = 0.1
"""The share of labels taken to be wrong. Without it lists that are all in order have no best scale:
the larger the factor, the less the loss, and at last nothing is left to learn from."""


def fit_score_scale(settings: RankingPhase, scorer: Scorer, groups: Iterable[Drawn]) -> float:
    """The factor on the scores at which the loss over some of these groups is least."""
    some = list(islice(groups, _QUERIES))
    pairs = [(group.query, document) for group in some for document in group.documents]
    sizes = [len(group.documents) for group in some]
    scores = torch.split(torch.from_numpy(scorer.score(pairs)).float(), sizes)

    def loss(factor: float) -> float:
        costs = [
            _cost(settings, factor * own, group) for own, group in zip(scores, some, strict=True)
        ]
        return torch.stack(costs).mean().item()

    return min(_FACTORS, key=loss)


def _cost(settings: RankingPhase, scores: Tensor, group: Drawn) -> Tensor:
    """The loss of one group; where it goes by labels, one in ten is that of another document."""
    grades = torch.tensor(group.labels)
    if settings.needs_teacher:
        return settings.cost(scores, grades, torch.tensor(group.teacher))
    right, wrong = settings.cost(scores, grades), settings.cost(scores, grades.roll(1))
    return (1 - _WRONG) * right + _WRONG * wrong


def kept_scale(
    settings: RankingPhase, scorer: Scorer, groups: Iterable[Drawn], folder: Path
) -> float:
    """The same, kept in the folder: a resumed training has the same factor without scoring."""
    kept = folder / "score_scale.json"
    if not kept.is_file():
        write_at_once(kept, json.dumps(fit_score_scale(settings, scorer, groups)))
    return float(json.loads(kept.read_text("utf-8")))
