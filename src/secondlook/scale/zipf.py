"""How often a cache answers, when the k-th most frequent query is asked in proportion to k^-s.

Ranks are taken in bins that widen by a hundredth, so that ten billion of them cost no more than a
million; a bin's queries are taken as equally frequent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXACT = 1000  # the most frequent queries have a bin each
_WIDER = 1.01


@dataclass(frozen=True, slots=True, eq=False)
class QueryLog:
    """Queries by how often they are asked."""

    share: NDArray[np.float64]  # [bins], of one query of the bin among all that are asked
    queries: NDArray[np.float64]  # [bins], how many there are

    @classmethod
    def zipf(cls, distinct: int, exponent: float) -> QueryLog:
        """`distinct` different queries, frequencies by Zipf's law."""
        edges = np.arange(1.0, min(distinct, _EXACT) + 2)
        if distinct > _EXACT:
            steps = int(np.ceil(np.log(distinct / _EXACT) / np.log(_WIDER)))
            wider = np.geomspace(edges[-1], distinct + 1, steps + 1)
            edges = np.append(edges, wider[1:])
        queries = np.diff(edges)
        middle = np.sqrt(edges[:-1] * (edges[1:] - 1))
        weight = middle**-exponent
        return cls(weight / (weight * queries).sum(), queries)

    def best(self, kept: float) -> float:
        """The share of requests answered by a cache of the `kept` most frequent queries."""
        before = np.cumsum(self.queries) - self.queries
        held = np.clip(kept - before, 0, self.queries)
        return float((held * self.share).sum())

    def lru(self, kept: float) -> float:
        """The same, of a cache that drops what was not asked for longest.

        Che's approximation: a query is in the cache if it was asked within the time in which `kept`
        different ones are (Che, Tung, Wang, JSAC 2002, equations 1 to 3).
        """
        if kept >= self.queries.sum():
            return 1.0
        low, high = 0.0, 60.0  # logarithm of that time, in requests
        for _ in range(80):
            middle = (low + high) / 2
            if (self.queries * self._asked_within(np.exp(middle))).sum() < kept:
                low = middle
            else:
                high = middle
        return float((self.queries * self.share * self._asked_within(np.exp(high))).sum())

    def fresh(self, requests: float) -> float:
        """The share answered by a cache without bounds whose answers last for so many requests."""
        asked = self.share * requests
        return float((self.queries * self.share * asked / (1 + asked)).sum())

    def _asked_within(self, requests: float) -> NDArray[np.float64]:
        chance: NDArray[np.float64] = -np.expm1(-self.share * requests)
        return chance
