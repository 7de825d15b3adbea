"""A ranker that counts what it scores: pairs, time, and texts that were cut short."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    import numpy as np
    from numpy.typing import NDArray

    from secondlook.score.export_folder import Engine, Precision
    from secondlook.score.scored import Scored
    from secondlook.score.vector_scorer import StoredScorer
    from secondlook.types import Corpus, Pair, Query, Ranking


@dataclass(frozen=True, slots=True)
class ScoringCost:
    """What was scored, how fast, and what was cut short."""

    pairs: int
    seconds: float
    """Spent on scoring alone."""
    truncated_texts: int = 0
    truncated_tokens: int = 0
    """Of all truncated texts together."""
    truncated_queries: int = 0
    price: float | None = None
    """Of the requests to a remote ranker, by the price in its address; None for one that runs here.
    What a remote ranker cuts short is not known."""
    from_stored: bool = False
    """Whether documents' vectors or states were scored: what they leave out of a text was cut when
    they were made, and is not counted here."""

    def summary(self) -> str:
        """A line for a person."""
        spent = f"{self.pairs:,} pairs"
        if self.seconds:
            rate = self.pairs / self.seconds
            spent += f" in {self.seconds:,.1f} s ({rate:,.1f} a second)"
        if self.price is not None:
            return f"{spent}, at a cost of {self.price:.4g}" if self.price else spent
        if self.truncated_queries:
            spent += f"; queries cut short: {self.truncated_queries:,}"
        if not self.truncated_texts:
            silent = self.truncated_queries or self.from_stored
            return spent if silent else f"{spent}, no text cut short"
        mean = self.truncated_tokens / self.truncated_texts
        return (
            f"{spent}; {self.truncated_texts:,} of {self.pairs:,} texts were longer than the "
            f"ranker reads and cut short, by {mean:,.0f} tokens on average"
        )


class CountingRanker:
    """A ranker that counts scored pairs, truncated texts and elapsed time.

    Its scores do not depend on the machine; `made_of` says what they depend on.
    """

    def __init__(
        self,
        source: str,
        backend: Literal["auto", "torch"] | Engine,
        precision: Literal["auto"] | Precision,
    ) -> None:
        from secondlook.rank.batches import DOCUMENTS, PAIRS
        from secondlook.score.open_ranker import made_of, open_ranker

        self.ranker = open_ranker(
            source, backend=backend, precision=precision, same_on_any_machine=True
        )
        self.advance: Callable[[int], None] = lambda _: None
        """Called with the number of pairs that were scored."""
        self.made_of = made_of(source, self.ranker)
        self.at_once = DOCUMENTS if self.ranker.reads_windows else PAIRS
        """How many documents make a batch."""
        self.stored: StoredScorer | None = None
        """Scores from stored vectors or states instead, where these are this ranker's."""
        self._cut_texts, self._cut_tokens, self._pairs, self._seconds = 0, 0, 0, 0.0
        self._cut_queries: set[str] = set()

    @property
    def reads_texts(self) -> bool:
        """Whether documents are fetched to be scored."""
        return self.stored is None or self.stored.reads_texts

    def rerank(
        self, queries: list[Query], rankings: list[Ranking], corpus: Corpus, *, raw: bool
    ) -> list[Ranking]:
        """Re-rank a batch of rankings; `raw` gives raw scores, those of windows one by one."""
        from secondlook.rank import rerank
        from secondlook.score.raw import raw_windows

        if raw and self.ranker.reads_windows:
            return raw_windows(queries, rankings, corpus, self)
        return rerank(queries, rankings, corpus, self, None if raw else self.ranker.fusion)

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The ranker's scores."""
        return self._counted((self.stored or self.ranker).scored, pairs).scores

    def scored_windows(self, pairs: Sequence[Pair]) -> Scored:
        """The ranker's scores of every window."""
        return self._counted((self.stored or self.ranker).scored_windows, pairs)

    def _counted(self, score: Callable[[Sequence[Pair]], Scored], pairs: Sequence[Pair]) -> Scored:
        began = monotonic()
        scored = score(pairs)
        self._seconds += monotonic() - began
        self._pairs += len(pairs)
        self._cut_texts += int((scored.cut > 0).sum())
        self._cut_tokens += int(scored.cut.sum())
        for row in scored.cut_query.nonzero()[0].tolist():
            self._cut_queries.add(pairs[row][0].id)
        self.advance(len(pairs))
        return scored

    def cost(self) -> ScoringCost:
        """What was scored so far."""
        from secondlook.score.remote_ranker import RemoteRanker

        return ScoringCost(
            self._pairs,
            self._seconds,
            self._cut_texts,
            self._cut_tokens,
            len(self._cut_queries),
            self.ranker.usage.cost if isinstance(self.ranker, RemoteRanker) else None,
            self.stored is not None,
        )
