"""The queue before a remote re-ranker: whole requests are passed on, and failures fall back."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import CostLimitReached, RemoteProblem, SecondlookError
from secondlook.remote.client import Usage
from secondlook.remote.sender import DeadlinePassed, RateLimitReached, Unanswered
from secondlook.serve.breaker import Breaker
from secondlook.serve.logs import LOGGER, note_sparingly, reason_of
from secondlook.serve.outcome import Outcome
from secondlook.serve.queue import QueueFull
from secondlook.serve.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.score.remote_ranker import RemoteRanker
    from secondlook.serve.metrics import Metrics
    from secondlook.types import Pair

_PATIENCE = 2.0
"""Seconds after which silence is the service's fault, and not that of a client in a hurry. They
count from when a request was sent: one that waits its turn says nothing of the service."""

_POLL = 0.01
"""Seconds between two looks whether requests are still under way."""


class _NotScored(Exception):
    """No pair of a request has a score; the message is for its client."""

    def __init__(self, failure: str, kind: str) -> None:
        super().__init__(failure)
        self.kind = kind


@dataclass(eq=False)
class RemoteQueue:
    """Scores the pairs of requests with a remote re-ranker.

    Requests are not merged or cut into chunks, as those of a local ranker are: services bill by
    request. Scores that are all kept on this machine need no service. Where that fails, is late,
    or is left alone after failures in a row, no pair has a score, and the answer has the order that
    the documents came in. `capacity` bounds the pairs that wait; a request that finds none waiting
    is always taken.
    """

    ranker: RemoteRanker
    name: str
    capacity: int
    metrics: Metrics
    breaker: Breaker = field(default_factory=Breaker)
    waiting: int = 0
    """How many pairs have no answer yet."""
    alive: bool = True

    def __post_init__(self) -> None:
        self._threads = Threads(self.ranker.client.address.options.concurrent)
        self._looking_up = Threads(1)  # scores on disk do not wait for a slow service
        self._told = Usage()

    async def score(self, pairs: Sequence[Pair], until: float) -> Outcome:
        """The scores of all pairs or, at `until` and after a failure, of none."""
        if self.waiting and self.waiting + len(pairs) > self.capacity:
            raise QueueFull(self.waiting, 1)
        self._count(len(pairs))
        began = time.monotonic()
        try:
            scores = await self._kept(pairs, until)
            if scores is None:
                scores = await self._asked(pairs, until)
        except _NotScored as none:
            self.metrics.scoring_errors.labels(self.name, none.kind).inc()
            return _outcome(pairs, None, str(none))
        finally:
            self._count(-len(pairs))
            self._tell_usage()
        self.metrics.stage_seconds.labels("score").observe(time.monotonic() - began)
        return _outcome(pairs, scores)

    async def _kept(self, pairs: Sequence[Pair], until: float) -> NDArray[np.float32] | None:
        """Scores that need no service, however that is; None where one is missing."""
        work = self._looking_up.run(lambda: self.ranker.kept(pairs))
        try:
            return await asyncio.wait_for(work, until - time.monotonic())
        except TimeoutError as error:
            raise _NotScored("the scores on disk were late", "timeout") from error
        except SecondlookError as error:
            LOGGER.error("no kept scores", extra={"facts": {"problem": str(error)}})
            raise _NotScored("the kept scores cannot be read", type(error).__name__) from error

    async def _asked(self, pairs: Sequence[Pair], until: float) -> NDArray[np.float32]:
        """The service's scores; the breaker is told how it went."""
        if not self.breaker.admit():
            raise _NotScored("the remote re-ranker keeps failing", "left alone")
        unanswered = Unanswered()

        def ask() -> NDArray[np.float32]:
            return self.ranker.score(pairs, until=until, unanswered=unanswered)

        try:
            scores = await asyncio.wait_for(self._threads.run(ask), until - time.monotonic())
        except (TimeoutError, DeadlinePassed) as error:
            if unanswered.seconds() >= _PATIENCE:
                self.breaker.failed()
            else:
                self.breaker.left()
            raise _NotScored("the remote re-ranker was late", "timeout") from error
        except (RateLimitReached, CostLimitReached) as limit:  # the user's, not the service's
            self.breaker.left()
            raise _over(limit) from limit
        except SecondlookError as error:
            if isinstance(error, RemoteProblem):
                self.breaker.failed()
            else:
                self.breaker.left()
            LOGGER.error("remote re-ranker failed", extra={"facts": {"problem": reason_of(error)}})
            raise _NotScored("the remote re-ranker failed", type(error).__name__) from error
        except BaseException:
            self.breaker.left()
            raise
        self.breaker.succeeded()
        return scores

    def close(self) -> None:
        """Nothing waits in it: requests under way are answered."""

    async def drained(self) -> None:
        """Come back when the last request is answered."""
        while self.waiting:
            await asyncio.sleep(_POLL)
        self._threads.close()
        self._looking_up.close()
        self.ranker.client.close()

    def _count(self, pairs: int) -> None:
        self.waiting += pairs
        self.metrics.queue_pairs.labels(self.name).inc(pairs)

    def _tell_usage(self) -> None:
        """Add to the metrics what the service was asked since the last time."""
        now, before = self.ranker.usage, self._told
        self._told = now
        for what, counter in (
            ("requests", self.metrics.remote_requests),
            ("retries", self.metrics.remote_retries),
            ("cached", self.metrics.remote_cached),
            ("cost", self.metrics.remote_cost),
        ):
            counter.labels(self.name).inc(max(0.0, getattr(now, what) - getattr(before, what)))


def _over(limit: RateLimitReached | CostLimitReached) -> _NotScored:
    """A request was not sent because of a limit in the address."""
    if isinstance(limit, CostLimitReached):
        reason, what = "limit of cost", "what the remote re-ranker may cost"
    else:
        reason, what = "limit of requests per minute", "requests to the remote re-ranker"
    note_sparingly("remote re-ranker not asked", reason)
    return _NotScored(f"the limit of {what} is reached", type(limit).__name__)


def _outcome(
    pairs: Sequence[Pair], scores: NDArray[np.float32] | None, failure: str = ""
) -> Outcome:
    """With all scores or none; what the service cut, and how many tokens it read, it keeps."""
    size, there = len(pairs), scores is not None
    none = np.zeros(size, np.intp)
    return Outcome(
        scored=np.full(size, there),
        scores=np.zeros(size, np.float32) if scores is None else scores,
        cut=none,
        cut_query=none,
        passages=[(0, len(document.text)) for _, document in pairs],
        windows=[int(there)] * size,
        tokens=none,
        failure=failure,
    )
