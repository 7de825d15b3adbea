"""The queue before a ranker: pairs of many requests are scored together, and none waits for all."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from secondlook.score.ranker import Encoded, Ranker, Scored
    from secondlook.serve.metrics import Metrics
    from secondlook.types import Pair

_CHUNK_SECONDS = 0.25
"""How long one chunk should take: what a request that has just come waits for at most, before its
first pairs are scored."""

_FEWEST_TOKENS = 4096
"""Of a chunk: fewer would leave the cores of a small machine with batches of a few pairs."""

_TURN = 16
"""Pairs a request may take in a row. Smaller requests are scored whole and in the order they came;
larger ones take turns with them."""

_MEMORY = 0.8
"""How much of what was learned of speed is kept when a new chunk was timed."""


class QueueFull(SecondlookError):
    """More pairs are waiting than the server takes."""

    def __init__(self, waiting: int, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(
            f"{waiting:,} documents are waiting to be scored already; try again in {seconds} s"
        )


class ScoringFailed(SecondlookError):
    """The ranker raised, or gave what is no number."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of a request's pairs until its deadline."""

    scored: NDArray[np.bool_]  # [pairs]
    scores: NDArray[np.float32]  # [pairs], raw; 0 where not scored
    cut: NDArray[np.intp]  # [pairs], how many tokens of the document were not seen
    passages: list[tuple[int, int]]
    """Where the best window of each document stands in its text, in characters."""
    windows: list[int]
    """How many windows each document was scored in; 0 where it was not."""
    tokens: NDArray[np.intp]  # [pairs], what the network read; 0 where not scored

    @property
    def partial(self) -> bool:
        """Whether the deadline came before the last score."""
        return not bool(self.scored.all())

    def order(self) -> list[int]:
        """The pairs best first; those without a score last, in the order they were given."""
        return np.lexsort((-self.scores, ~self.scored)).tolist()  # type: ignore[no-any-return]


@dataclass(slots=True, eq=False)
class _Job:
    """One request in the queue. Its results are written, and read, under the queue's lock."""

    pairs: Sequence[Pair]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]
    arrived: float
    outcome: Outcome
    next: int = 0
    """The first pair that nobody has taken."""
    left: int = 0
    """How many pairs have no score yet."""
    over: bool = False
    """Answered or withdrawn: nothing more is wanted."""


@dataclass(slots=True)
class _Speed:
    """What the chunks so far tell of this machine, this ranker and these texts."""

    tokens_per_second: float = 0.0
    pairs_per_second: float = 0.0
    tokens_per_character: float = 0.25

    def learn(self, seconds: float, pairs: int, tokens: int, characters: int) -> None:
        for name, now in (
            ("tokens_per_second", tokens / max(seconds, 1e-6)),
            ("pairs_per_second", pairs / max(seconds, 1e-6)),
            ("tokens_per_character", tokens / max(characters, 1)),
        ):
            before = getattr(self, name) or now
            setattr(self, name, _MEMORY * before + (1 - _MEMORY) * now)

    @property
    def chunk_tokens(self) -> float:
        """As many as take `_CHUNK_SECONDS`: few on two cores, many on a GPU."""
        return max(_FEWEST_TOKENS, self.tokens_per_second * _CHUNK_SECONDS)


_Chunk = list[tuple[_Job, int]]


@dataclass(eq=False)
class ScoringQueue:
    """Scores the pairs of many requests with one ranker, in chunks that a single thread takes.

    A chunk holds pairs of as many requests as fit, so small requests are scored together, and a
    new one waits for one chunk, not for the large request before it. Requests take turns. A request
    is answered at its deadline with what is scored by then; what is withdrawn is not scored at all.
    `capacity` bounds the pairs that wait; a request that finds the queue empty is always taken.
    """

    ranker: Ranker
    name: str
    capacity: int
    metrics: Metrics
    _jobs: deque[_Job] = field(default_factory=deque)
    _waiting: int = 0
    _closing: bool = False
    _speed: _Speed = field(default_factory=_Speed)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"score {self.name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many pairs have no score yet."""
        return self._waiting

    @property
    def alive(self) -> bool:
        """Whether anybody takes pairs from it."""
        return self._thread.is_alive()

    async def score(self, pairs: Sequence[Pair], until: float) -> Outcome:
        """What is scored when all is, or when `time.monotonic()` comes to `until`.

        Raises QueueFull, or ScoringFailed. Cancelled, the pairs that wait are dropped.
        """
        job = self._admit(pairs)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(job.done, until - time.monotonic())
        finally:
            self._withdraw(job)
        return job.outcome

    def close(self) -> None:
        """Take no more; the thread ends when what waits is scored."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    async def drained(self) -> None:
        """Close, and come back when the last pair is scored."""
        self.close()
        await asyncio.to_thread(self._thread.join)

    def _admit(self, pairs: Sequence[Pair]) -> _Job:
        loop = asyncio.get_running_loop()
        size = len(pairs)
        outcome = Outcome(
            scored=np.zeros(size, np.bool_),
            scores=np.zeros(size, np.float32),
            cut=np.zeros(size, np.intp),
            passages=[(0, 0)] * size,
            windows=[0] * size,
            tokens=np.zeros(size, np.intp),
        )
        job = _Job(pairs, loop, loop.create_future(), time.monotonic(), outcome, left=size)
        with self._changed:
            assert not self._closing, (
                "a closed queue is asked by nobody: the new one took its place"
            )
            if self._waiting and self._waiting + size > self.capacity:
                seconds = self._waiting / (self._speed.pairs_per_second or 1.0)
                raise QueueFull(self._waiting, max(1, math.ceil(seconds)))
            if size:
                self._count(size)
                self._jobs.append(job)
                self._changed.notify()
            else:
                job.done.set_result(None)
        return job

    def _withdraw(self, job: _Job) -> None:
        with self._changed:
            if job.over:
                return
            job.over = True
            self._count(-job.left)
            with suppress(ValueError):
                self._jobs.remove(job)

    def _count(self, pairs: int) -> None:
        self._waiting += pairs
        self.metrics.queue_pairs.labels(self.name).inc(pairs)

    def _run(self) -> None:
        while chunk := self._take():
            self._score(chunk)

    def _take(self) -> _Chunk:
        """The next chunk; none when the queue is closed and empty. Requests take turns."""
        with self._changed:
            while not self._jobs:
                if self._closing:
                    return []
                self._changed.wait()
            budget, chunk, tokens = self._speed.chunk_tokens, _Chunk(), 0.0
            while self._jobs and tokens < budget:
                job = self._jobs.popleft()
                turn = range(job.next, min(job.next + _TURN, len(job.pairs)))
                for place in turn:
                    chunk.append((job, place))
                    job.next = place + 1
                    tokens += self._tokens(job.pairs[place])
                    if tokens >= budget:
                        break
                if job.next < turn.stop:  # the chunk is full in the middle of its turn
                    self._jobs.appendleft(job)
                elif job.next < len(job.pairs):
                    self._jobs.append(job)
            now = time.monotonic()
        for job in {id(job): job for job, _ in chunk}.values():
            if job.left == len(job.pairs):
                self.metrics.stage_seconds.labels("wait").observe(now - job.arrived)
        self.metrics.chunk_fill.observe(tokens / budget)
        return chunk

    def _tokens(self, pair: Pair) -> float:
        """How many tokens a pair has, roughly: what it costs is known only when it is encoded."""
        guess = _characters(pair) * self._speed.tokens_per_character
        encode = self.ranker.settings.encode
        return guess if encode.windows is not None else min(guess, encode.max_length)

    def _score(self, chunk: _Chunk) -> None:
        """Score a chunk; if that fails, each request's share alone, so that one fails, not all."""
        pairs = [job.pairs[place] for job, place in chunk]
        jobs = {id(job): job for job, _ in chunk}
        try:
            began = time.monotonic()
            encoded = self.ranker.encode(pairs)
            between = time.monotonic()
            made = self.ranker.score_encoded(encoded)
            if not np.isfinite(made.scores).all():
                raise ScoringFailed("the ranker gave a score that is no number; check its export")
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread must go on
            if len(jobs) > 1:
                for job in jobs.values():
                    self._score([one for one in chunk if one[0] is job])
            else:
                self._fail(chunk[0][0], error)
            return
        seconds = time.monotonic() - began
        tokens = sum(len(row) for one in encoded for row in one.rows)
        self._speed.learn(seconds, len(pairs), tokens, sum(map(_characters, pairs)))
        self.metrics.stage_seconds.labels("encode").observe(between - began)
        self.metrics.stage_seconds.labels("score").observe(seconds - (between - began))
        self.metrics.chunk_pairs.observe(len(chunk))
        self.metrics.chunk_requests.observe(len(jobs))
        self._deliver(chunk, encoded, made)

    def _deliver(self, chunk: _Chunk, encoded: list[Encoded], made: Scored) -> None:
        finished = []
        with self._changed:
            for (job, place), one, score, cut, best in zip(
                chunk, encoded, made.scores, made.cut.tolist(), made.best.tolist(), strict=True
            ):
                if job.over:
                    continue
                job.outcome.scores[place] = score
                job.outcome.scored[place] = True
                job.outcome.cut[place] = cut
                job.outcome.passages[place] = one.spans[best]
                job.outcome.windows[place] = len(one.rows)
                job.outcome.tokens[place] = sum(map(len, one.rows))
                job.left -= 1
                self._count(-1)
                if not job.left:
                    job.over = True
                    finished.append(job)
        for job in finished:
            _resolve(job, None)

    def _fail(self, job: _Job, error: Exception) -> None:
        self.metrics.scoring_errors.labels(self.name, type(error).__name__).inc()
        self._withdraw(job)
        failure = error if isinstance(error, ScoringFailed) else ScoringFailed("the ranker failed")
        failure.__cause__ = error if failure is not error else None
        _resolve(job, failure)


def _characters(pair: Pair) -> int:
    query, document = pair
    return len(query.text) + len(document.title) + len(document.text)


def _resolve(job: _Job, failure: Exception | None) -> None:
    """Wake who waits, in the loop that waits."""

    def tell() -> None:
        if job.done.done():
            return
        if failure is None:
            job.done.set_result(None)
        else:
            job.done.set_exception(failure)

    with suppress(RuntimeError):  # the loop is closed: nobody waits
        job.loop.call_soon_threadsafe(tell)
