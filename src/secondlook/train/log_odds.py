"""Where pointwise training of a warm ranker begins: with scores that are log-odds.

Cross-entropy of single pairs reads a score as log-odds, and cosines become scores of some thirty
for every pair. Learning would spend its first steps, which are the largest, on pushing all of them
down, and lose the order on the way.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from secondlook.score.scale import fit_platt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secondlook.model.warm import Warm
    from secondlook.score.ranker import Ranker
    from secondlook.train.draw import Drawn

_QUERIES = 64  # whose pairs are fitted
_LEAST = 0.05  # of the slope: where scores tell nothing yet, it must not turn the order round


def into_log_odds(network: Warm, ranker: Ranker, groups: Iterable[Drawn]) -> None:
    """Scale and shift the network's scores as Platt's fit to these groups says; no order changes.

    `ranker` scores with the network.
    """
    some = list(islice(groups, _QUERIES))
    pairs = [(group.query, document) for group in some for document in group.documents]
    relevant = np.array([label > 0 for group in some for label in group.labels])
    scores = ranker.score(pairs).astype(np.float64)
    fitted = fit_platt(scores, relevant)
    slope = max(fitted.slope, _LEAST)
    shift = fitted.intercept + (fitted.slope - slope) * scores.mean()
    windows = ranker.settings.encode.windows
    if windows is not None and windows.weights:
        shift /= sum(windows.weights)  # a document gets as much when each of its windows gets one
    with torch.no_grad():
        for weight in (network.alpha, network.head.weight, network.head.bias):
            weight.mul_(slope)
        network.head.bias.add_(shift)
