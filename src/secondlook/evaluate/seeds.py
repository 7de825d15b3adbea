"""What a difference between two recipes would be with other queries and other seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OverSeeds:
    """The 95% interval of a mean difference, and the p of none."""

    low: float
    high: float
    p: float


def over_seeds(differences: Sequence[Floats]) -> list[OverSeeds | None]:
    """For each difference, an array [seeds, queries]; None where nothing tells what seeds change.

    The variances of the two means, over queries and over seeds, add up, with Welch and
    Satterthwaite's degrees of freedom. Two or three seeds say little, so the variance between
    seeds is that of all differences over as many queries together (docs/decisions/0258).
    """
    centred: dict[int, list[Floats]] = {}
    for values in differences:
        of_seeds = values.mean(axis=1)
        centred.setdefault(values.shape[1], []).append(of_seeds - of_seeds.mean())
    found: list[OverSeeds | None] = []
    for values in differences:
        together = centred[values.shape[1]]
        freedom = sum(len(means) - 1 for means in together)
        if freedom == 0 or values.shape[1] < 2:
            found.append(None)
        else:
            between = sum(float((means**2).sum()) for means in together) / freedom
            found.append(_two_way(values, between, freedom))
    return found


def _two_way(values: Floats, between: float, freedom: int) -> OverSeeds:
    from scipy.stats import t

    seeds, queries = values.shape
    mean = float(values.mean())
    of_seeds, of_queries = between / seeds, float(values.mean(axis=0).var(ddof=1)) / queries
    error = (of_seeds + of_queries) ** 0.5
    if error == 0:  # all alike
        return OverSeeds(mean, mean, float(mean == 0))
    both = error**4 / (of_seeds**2 / freedom + of_queries**2 / (queries - 1))
    half = float(t.ppf(0.975, both)) * error
    return OverSeeds(mean - half, mean + half, float(2 * t.sf(abs(mean) / error, both)))
