"""The second stage of a request: its documents, scored until its deadline."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from secondlook.errors import SecondlookError
from secondlook.serve.logs import LOGGER
from secondlook.serve.outcome import SecondLook
from secondlook.serve.problems import Refused
from secondlook.serve.queue import QueueFull, ScoringFailed, ScoringQueue
from secondlook.serve.spans import span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from secondlook.score.ranker import Ranker
    from secondlook.serve.by_vectors import VectorScoring
    from secondlook.serve.metrics import Metrics
    from secondlook.serve.remote_queue import RemoteQueue
    from secondlook.serve.threads import Threads
    from secondlook.types import Document, Query


@dataclass(eq=False)
class SecondStage:
    """Scores documents: from what the index stores of them, else in the queue of a ranker."""

    queues: Mapping[str, ScoringQueue | RemoteQueue]
    """By the ranker's name. A reload replaces them, and closes the old ones."""
    sources: Mapping[str, str]
    """Where the rankers come from."""
    stored: VectorScoring | None
    """None where there is no index."""
    engine: Threads
    metrics: Metrics

    async def score(
        self,
        name: str,
        query: Query,
        documents: Sequence[Document],
        until: float,
        *,
        indexed: bool = False,
        order: Sequence[int] = (),
    ) -> SecondLook:
        """Score the documents, as many as can be until the deadline.

        Those of the index (`indexed`) from its vectors or states, where these are the ranker's
        own. Else, where time may be too short for all, the nearest ones are scored first. `order`
        is the places of the documents as the first stage has them, where they stand otherwise.
        """
        queue = self.queues[name]
        look, nearest = None, list[int]()
        if indexed and self.stored is not None and isinstance(queue, ScoringQueue):
            look = await self._from_stored(self.stored, name, queue.ranker, query, documents, until)
            if look is None and _may_be_too_many(queue, len(documents), until):
                nearest = await self._nearest_first(self.stored, query, documents, until)
        if look is None:
            look = await self._queued(name, query, documents, nearest or order, until)
            if nearest and look.outcome.partial:
                look = replace(look, cascade=tuple(nearest))
        self._count(look)
        return look

    async def _from_stored(
        self,
        stored: VectorScoring,
        name: str,
        ranker: Ranker,
        query: Query,
        documents: Sequence[Document],
        until: float,
    ) -> SecondLook | None:
        """Scores from stored vectors or states; None without these, or where there is no time."""
        source, began = self.sources[name], time.monotonic()
        work = self.engine.run(lambda: stored.outcome(source, ranker, query, documents, until))
        try:
            with span("second look"):
                scored = await asyncio.wait_for(work, until - began)
        except (TimeoutError, SecondlookError) as problem:  # then the documents are read
            LOGGER.warning("no scores by vectors", extra={"facts": {"problem": repr(problem)}})
            return None
        if scored is None:
            return None
        outcome, used = scored
        self.metrics.stage_seconds.labels("score").observe(time.monotonic() - began)
        vectors, states = used == "vectors", used == "states"
        return SecondLook(ranker, name, outcome, by_vectors=vectors, by_states=states)

    async def _nearest_first(
        self, stored: VectorScoring, query: Query, documents: Sequence[Document], until: float
    ) -> list[int]:
        """The places of the documents by the index's vectors; empty where it has none."""
        work = self.engine.run(lambda: stored.nearest_first(query, documents))
        try:
            return await asyncio.wait_for(work, until - time.monotonic())
        except (TimeoutError, SecondlookError) as problem:  # then as the first stage has them
            LOGGER.warning("no cascade", extra={"facts": {"problem": repr(problem)}})
            return []

    async def _queued(
        self,
        name: str,
        query: Query,
        documents: Sequence[Document],
        order: Sequence[int],
        until: float,
    ) -> SecondLook:
        """Scores by the ranker, in this order of the documents, or as they stand where it is empty.

        Refused with 429 where too many wait, and with 500 where the ranker fails.
        """
        first = [documents[place] for place in order] or documents
        pairs = [(query, document) for document in first]
        with span("second look"):
            queue = self.queues[name]  # asked at once, so that a reload cannot close it before
            try:
                outcome = await queue.score(pairs, until)
            except QueueFull as full:
                raise Refused(429, str(full), retry_after=full.seconds) from full
            except ScoringFailed as failure:
                LOGGER.exception("scoring failed", exc_info=failure)
                raise Refused(500, f"{failure}; the server's log says why") from failure
        return SecondLook(queue.ranker, name, outcome.placed(order) if order else outcome)

    def _count(self, look: SecondLook) -> None:
        outcome, scored = look.outcome, int(look.outcome.scored.sum())
        self.metrics.documents.labels(look.name).inc(scored)
        self.metrics.truncated.labels(look.name).inc(int((outcome.cut > 0).sum()))
        if look.by_vectors or look.by_states:
            self.metrics.vector_documents.labels(look.name).inc(scored)
        if outcome.partial:
            self.metrics.partials.labels(look.name).inc()
        if look.cascade:
            self.metrics.cascade_documents.labels(look.name).observe(scored)


def _may_be_too_many(queue: ScoringQueue, documents: int, until: float) -> bool:
    """Whether time may be too short for all of them; not where nothing is known yet."""
    affordable = queue.affordable(until)
    return affordable is not None and affordable < documents
