"""What became of a request's pairs until its deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of a request's pairs until its deadline."""

    scored: NDArray[np.bool_]  # [pairs]
    scores: NDArray[np.float32]  # [pairs], raw; 0 where not scored
    cut: NDArray[np.intp]  # [pairs], how many tokens of the document were not seen
    cut_query: NDArray[np.intp]  # [pairs], how many tokens of the query were not seen beside it
    passages: list[tuple[int, int]]
    """Where the best window of each document stands in its text, in characters."""
    windows: list[int]
    """How many windows each document was scored in; 0 where it was not."""
    tokens: NDArray[np.intp]  # [pairs], what the network read; 0 where not scored
    failure: str = ""
    """Why nothing is scored, where that was not the deadline."""

    def first_scored(self) -> Outcome:
        """The same with scores for the first pairs only, up to the first that has none.

        Of two chunks that are scored at once the second may end first. Scores behind a gap would
        lift documents over better ones that were not looked at: a partial answer is one of a
        smaller depth, so they are dropped.
        """
        if self.scored.all():
            return self
        count = int(self.scored.argmin())
        first = np.arange(len(self.scored)) < count
        return Outcome(
            scored=first,
            scores=np.where(first, self.scores, np.float32(0)),
            cut=np.where(first, self.cut, 0),
            cut_query=np.where(first, self.cut_query, 0),
            passages=self.passages[:count] + [(0, 0)] * (len(first) - count),
            windows=self.windows[:count] + [0] * (len(first) - count),
            tokens=np.where(first, self.tokens, 0),
        )

    @property
    def partial(self) -> bool:
        """Whether the deadline came before the last score."""
        return not bool(self.scored.all())

    def order(self) -> list[int]:
        """The pairs best first; those without a score last, in the order they were given."""
        return np.lexsort((-self.scores, ~self.scored)).tolist()  # type: ignore[no-any-return]
