"""A re-ranker that somebody else runs, used as a Ranker is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from secondlook.remote.address import RemoteAddress
from secondlook.score.ranked_texts import check_first_stage_scores, ranked_texts
from secondlook.score.scale import sigmoid
from secondlook.score.scored import Scored
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.data.conversions import Queries, RunLike
    from secondlook.data.run import Run
    from secondlook.progress import Progress, ProgressCallback
    from secondlook.remote.client import RemoteClient, Usage
    from secondlook.remote.sender import Unanswered
    from secondlook.score.ranked_texts import RankedText
    from secondlook.types import Corpus, Pair

    _Group = tuple[str, list[str]]

_NEAREST = 1e-15
"""How near to 0 and 1 a probability counts: beyond, its log-odds are infinite."""


class RemoteRanker:
    """Scores how well documents answer queries by asking a service over HTTP.

    `score` gives raw scores, for ranking, fusing and teaching: the log-odds of the service's score
    where that is from 0 to 1, so that a service that applies a sigmoid gives its logits. `predict`
    and `rank` give the scores from 0 to 1. Title and text of a document are sent as one text. How
    much of a text is read is the service's own matter.
    """

    fusion = None
    """No first-stage score is added."""
    reads_windows = False
    """Documents are sent whole."""

    def __init__(self, client: RemoteClient) -> None:
        self.client = client

    @classmethod
    def load(cls, address: str, *, cached: bool = True) -> RemoteRanker:
        """A ranker at an address, as in "https://api.cohere.com/v2/rerank#model=rerank-v3.5".

        Unless `cached` is set, no score is taken from this machine's disk or kept there.
        """
        from secondlook.remote.client import RemoteClient

        parsed = RemoteAddress.parse(address)
        return cls(RemoteClient(parsed if cached else parsed.without_cache()))

    @property
    def name(self) -> str:
        """Host and model."""
        return self.client.address.name

    @property
    def made_of(self) -> dict[str, Any]:
        """What a score depends on, beside the texts."""
        return {"remote": self.client.address.identity()}

    @property
    def usage(self) -> Usage:
        """Requests, documents and cost so far."""
        return self.client.usage

    @property
    def score_meaning(self) -> str:
        """What a relevance score of this ranker means, in one sentence."""
        return f"Scores from 0 to 1, as {self.name} gives them."

    def score(
        self,
        pairs: Sequence[Pair],
        *,
        until: float | None = None,
        unanswered: Unanswered | None = None,
    ) -> NDArray[np.float32]:
        """One raw score per pair, in the order given; higher is more relevant.

        Raises RemoteProblem where the service fails, or at `until`, of `time.monotonic()`, when
        `unanswered` tells how long the service has been silent; scores that came before that are
        kept on this machine.
        """
        groups = _by_query(pairs)
        scores = self.client.score(groups, until=until, unanswered=unanswered)
        return self._raw(pairs, groups, scores)

    def kept(self, pairs: Sequence[Pair]) -> NDArray[np.float32] | None:
        """As `score`, where all scores are kept on this machine; else None, and nothing is sent."""
        groups = _by_query(pairs)
        scores = self.client.kept(groups)
        return None if scores is None else self._raw(pairs, groups, scores)

    def _raw(
        self, pairs: Sequence[Pair], groups: Sequence[_Group], scores: Sequence[Sequence[float]]
    ) -> NDArray[np.float32]:
        given = {query: iter(some) for (query, _), some in zip(groups, scores, strict=True)}
        values = np.array([next(given[query.text]) for query, _ in pairs], np.float64)
        if self.client.address.gives_raw_scores:
            return values.astype(np.float32)
        return _log_odds(values).astype(np.float32)

    def scored(self, pairs: Sequence[Pair]) -> Scored:
        """The same as `Ranker.scored`; what a service cuts short, it does not say."""
        return Scored.of(self.score(pairs), [1] * len(pairs), None)

    def scored_windows(self, pairs: Sequence[Pair]) -> Scored:
        """The same: documents are sent whole."""
        return self.scored(pairs)

    def predict(
        self, pairs: Sequence[tuple[str, str]], *, raw_scores: bool = False
    ) -> NDArray[np.float32]:
        """One relevance score per (query text, document text), or one raw score."""
        scores = self.score([(Query("", query), Document("", text)) for query, text in pairs])
        return scores if raw_scores else self.relevance(scores)

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,  # noqa: FBT001, FBT002 - sentence-transformers' signature
        *,
        raw_scores: bool = False,
        first_stage_scores: Sequence[float] | None = None,
    ) -> list[RankedText]:
        """The documents best first, each by its place in `documents`; equals keep their order.

        `first_stage_scores` change nothing, as for a Ranker without `fusion`.
        """
        check_first_stage_scores(first_stage_scores, len(documents))
        scores = self.score([(Query("", query), Document("", text)) for text in documents])
        shown = scores if raw_scores else self.relevance(scores)
        return ranked_texts(scores, shown, documents if return_documents else None, top_k)

    def rerank(
        self,
        queries: Queries,
        rankings: RunLike,
        corpus: Corpus,
        *,
        depth: int | None = None,
        progress: Progress | ProgressCallback | None = None,
    ) -> Run:
        """Re-rank the candidates of each query, as `Ranker.rerank` does."""
        from secondlook.score.reranking import rerank_run

        return rerank_run(self, queries, rankings, corpus, depth=depth, progress=progress)

    def relevance(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The relevance scores of these raw scores: from 0 to 1, in the same order."""
        return sigmoid(scores.astype(np.float64)).astype(np.float32)


def _by_query(pairs: Sequence[Pair]) -> list[_Group]:
    groups: dict[str, list[str]] = {}
    for query, document in pairs:
        groups.setdefault(query.text, []).append(sent_text(document))
    return list(groups.items())


def sent_text(document: Document) -> str:
    """What a service is sent of a document."""
    return f"{document.title} {document.text}" if document.title else document.text


def _log_odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(probabilities, _NEAREST, 1 - _NEAREST)
    odds: NDArray[np.float64] = np.log(inside) - np.log1p(-inside)
    return odds
