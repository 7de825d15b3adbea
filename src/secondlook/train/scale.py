"""What the finished ranker's scale is fitted to: queries with their own and others' positives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.score.default_scale import SAMPLED, reference_pairs, training_pairs
from secondlook.train.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secondlook.score.default_scale import ScalePairs
    from secondlook.train.phase import TrainData
    from secondlook.types import Pair

_LEAST = 10


def scale_pairs(data: TrainData) -> ScalePairs:
    """Of the validation queries, which the weights have not seen; else of the training queries.

    Where neither are enough, the built-in reference pairs.
    """
    for paths in ([data.validate] if data.validate else [], data.train):
        positives = list(_positives(Groups(paths))) if paths else []
        if len(positives) >= _LEAST:
            return training_pairs(positives)
    return reference_pairs()


def _positives(groups: Groups) -> Iterator[Pair]:
    """A positive of some queries, evenly spread over the files."""
    for place in range(0, len(groups), max(1, len(groups) // SAMPLED)):
        group = groups[place]
        for document, label in zip(group.documents, group.labels, strict=True):
            if label > 0:
                yield group.query, document
                break
