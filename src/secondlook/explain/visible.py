"""Which attention maps carry anything to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from secondlook.explain.findings import AttentionMap

VISIBLE = 1e-3
"""Weights below it are noise: attention that is spread evenly over the longest input of most
encoders, 512 tokens, gives each about 2e-3."""
ALIKE = 0.02
"""Maps that differ by less than this share of their largest weight look the same."""


def worth_showing(
    maps: tuple[AttentionMap, ...], *, two_vectors: bool
) -> tuple[tuple[AttentionMap, ...], str]:
    """The maps that show something, and what is to be said in place of the others.

    The first is the ranker's own. `two_vectors` says that what is left without attention between
    the texts is a comparison of their vectors.
    """
    weights = [_weights(one) for one in maps]
    if not weights or not weights[0].size:
        return maps, ""
    largest = float(weights[0].max())
    if largest < VISIBLE:
        note = (
            "query and document hardly attend to each other in this ranker "
            f"(largest weight {largest:.2g})"
        )
        return (), note + ("; its score is a comparison of two vectors" if two_vectors else "")
    differences = [float(np.abs(other - weights[0]).max()) for other in weights[1:]]
    if differences and max(differences) < ALIKE * largest:
        return maps[:1], "with and without STRM the attention is the same here: one map is shown"
    return maps, ""


def _weights(one: AttentionMap) -> NDArray[np.float64]:
    """All weights between the two texts, in either direction."""
    both = (one.query_to_document, one.document_to_query)
    return np.concatenate([np.array(rows, np.float64).ravel() for rows in both])
