"""What became of a request's pairs until its deadline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from secondlook.rank.fusion import fuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.score.open_ranker import AnyRanker


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
        return replace(
            self,
            scored=first,
            scores=np.where(first, self.scores, np.float32(0)),
            cut=np.where(first, self.cut, 0),
            cut_query=np.where(first, self.cut_query, 0),
            passages=self.passages[:count] + [(0, 0)] * (len(first) - count),
            windows=self.windows[:count] + [0] * (len(first) - count),
            tokens=np.where(first, self.tokens, 0),
        )

    def placed(self, places: Sequence[int]) -> Outcome:
        """The same in another order: the first pair goes to `places[0]`, and so on."""
        come_from = np.argsort(np.asarray(places, np.intp))
        return replace(
            self,
            scored=self.scored[come_from],
            scores=self.scores[come_from],
            cut=self.cut[come_from],
            cut_query=self.cut_query[come_from],
            passages=[self.passages[place] for place in come_from],
            windows=[self.windows[place] for place in come_from],
            tokens=self.tokens[come_from],
        )

    @property
    def partial(self) -> bool:
        """Whether the deadline came before the last score."""
        return not bool(self.scored.all())

    def order(self, final: NDArray[np.float64] | None = None) -> list[int]:
        """The pairs best first, by their final scores where there are such.

        Those without a score are last; equals stand in the order they were given.
        """
        by = self.scores if final is None else final
        return np.lexsort((-by, ~self.scored)).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class SecondLook:
    """A request's documents, scored."""

    ranker: AnyRanker
    name: str
    outcome: Outcome
    by_vectors: bool = False
    """Whether the scores come from the index's vectors."""
    cascade: tuple[int, ...] = ()
    """All documents, nearest to the query's vector first, where the deadline came when the first
    of them were scored; empty where all were, or where there are no vectors."""
    by_states: bool = False
    """Whether scoring started from the states of documents that the index stores."""

    @property
    def relevance_scores(self) -> NDArray[np.float32]:
        """From 0 to 1, as `Ranker.predict` gives them; 0 where there is none."""
        scores = self.ranker.relevance(self.outcome.scores)
        return np.where(self.outcome.scored, scores, np.float32(0))

    def final_scores(self, first: Sequence[float] | None) -> NDArray[np.float64]:
        """What each document's rank goes by: the raw scores, if none of the first stage are known.

        Else what the ranker was tuned to make of both, and without a score the first stage's own.
        """
        scored, final = self.outcome.scored, self.outcome.scores.astype(np.float64)
        if first is not None:
            of_first = np.asarray(first, np.float64)
            final[~scored] = of_first[~scored]
            if self.ranker.fusion is not None:
                final[scored] = fuse(of_first[scored], final[scored], self.ranker.fusion)
        return final

    @property
    def raw_scores(self) -> NDArray[np.float32]:
        """What has no score gets the lowest that was given, so that the order holds."""
        outcome = self.outcome
        lowest = outcome.scores[outcome.scored].min(initial=np.inf) if outcome.scored.any() else 0.0
        return np.where(outcome.scored, outcome.scores, np.float32(lowest))
