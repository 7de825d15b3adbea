"""What the finished ranker's scale is fitted to: queries with their own and others' positives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.score.default_scale import SAMPLED, reference_pairs, training_pairs
from secondlook.train.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from secondlook.score.default_scale import ScalePairs
    from secondlook.train.phase import TrainData
    from secondlook.types import Document, Query

_LEAST = 10


def scale_pairs(data: TrainData) -> ScalePairs:
    """Of the validation queries, which the weights have not seen; else of the training queries.

    Where neither are enough, the built-in reference pairs.
    """
    for paths in ([data.validate] if data.validate else [], data.train):
        positives = list(_positives(Groups(paths))) if paths else []
        if len(positives) >= _LEAST:
            pairs = training_pairs(positives)
            if len(pairs.unrelated) >= _LEAST:  # else queries share their relevant documents
                return pairs
    return reference_pairs()


def _positives(groups: Groups) -> Iterator[tuple[Query, Document, Collection[str]]]:
    """A positive of some queries, evenly spread over the files, and the ids of all they have."""
    for place in range(0, len(groups), max(1, len(groups) // SAMPLED)):
        group = groups[place]
        labelled = zip(group.documents, group.labels, strict=True)
        positives = [document for document, label in labelled if label > 0]
        if positives:
            yield group.query, positives[0], {document.id for document in positives}
