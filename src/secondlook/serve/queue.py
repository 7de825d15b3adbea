"""The queue before a ranker: pairs of many requests are scored together, and none waits for all."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from secondlook.errors import SecondlookError
from secondlook.serve.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.score.ranker import Encoded, Ranker
    from secondlook.score.scored import Scored
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

_AT_ONCE = 2
"""Chunks that are scored at once: while the cores finish the last batches of one, the next is
encoded and begun."""

_POLL = 0.01
"""Seconds between two looks whether the threads have ended."""

_SURE = 0.8
"""The share of what could be scored in a time that can be counted on."""

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
    """What the chunks so far tell of this machine, this ranker and these texts.

    Sums that fade; their ratios are the rates. Of two chunks scored at once the one that ends first
    has had most of the time, the other most of the cores: only together they tell how fast it goes.
    """

    seconds: float = 0.0
    pairs: float = 0.0
    tokens: float = 0.0
    characters: float = 0.0

    def learn(self, seconds: float, pairs: int, tokens: int, characters: int) -> None:
        self.seconds = _MEMORY * self.seconds + max(seconds, 1e-6)
        self.pairs = _MEMORY * self.pairs + pairs
        self.tokens = _MEMORY * self.tokens + tokens
        self.characters = _MEMORY * self.characters + characters

    @property
    def pairs_per_second(self) -> float:
        """0 before the first chunk."""
        return self.pairs / self.seconds if self.seconds else 0.0

    @property
    def tokens_per_character(self) -> float:
        return self.tokens / self.characters if self.characters else 0.25

    @property
    def chunk_tokens(self) -> float:
        """As many as take `_CHUNK_SECONDS`: few on two cores, many on a GPU."""
        rate = self.tokens / self.seconds if self.seconds else 0.0
        return max(_FEWEST_TOKENS, rate * _CHUNK_SECONDS)


_Chunk = list[tuple[_Job, int]]


@dataclass(eq=False)
class ScoringQueue:
    """Scores the pairs of many requests with one ranker, in chunks.

    A chunk holds pairs of as many requests as fit, so small requests are scored together, and a
    new one waits for a chunk or two, not for the large request before it. A second chunk is begun
    beside the first only if it is full: what is less gains more by being merged with what comes
    next. Requests take turns. A request
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
    _under_way: int = 0
    """Chunks that are being scored."""
    _accounted: float = 0.0
    """Until when the time in which chunks are scored is counted."""

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._run, name=f"score {self.name} {number}", daemon=True)
            for number in range(_AT_ONCE)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many pairs have no score yet."""
        return self._waiting

    @property
    def alive(self) -> bool:
        """Whether anybody takes pairs from it."""
        return any(thread.is_alive() for thread in self._threads)

    def affordable(self, until: float) -> int | None:
        """How many more pairs can be scored until then, going by the chunks so far; None: unknown.

        Pairs of other requests that wait already are scored in turns with new ones.
        """
        speed = self._speed.pairs_per_second
        if not speed:
            return None
        seconds = max(0.0, until - time.monotonic())
        return max(1, int(_SURE * seconds * speed) - self._waiting // 2)

    async def score(self, pairs: Sequence[Pair], until: float) -> Outcome:
        """What is scored when all is, or when `time.monotonic()` comes to `until`.

        Then the first pairs have scores and the others none, never some amid the others. Raises
        QueueFull, or ScoringFailed. Cancelled, the pairs that wait are dropped.
        """
        job = self._admit(pairs)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(job.done, until - time.monotonic())
        finally:
            self._withdraw(job)
        return job.outcome.first_scored()

    def close(self) -> None:
        """Take no more; the threads end when what waits is scored."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    async def drained(self) -> None:
        """Close, and come back when the last pair is scored."""
        self.close()
        while self.alive:  # not joined in a thread of a pool, which would be joined at exit
            await asyncio.sleep(_POLL)

    def _admit(self, pairs: Sequence[Pair]) -> _Job:
        loop = asyncio.get_running_loop()
        size = len(pairs)
        outcome = Outcome(
            scored=np.zeros(size, np.bool_),
            scores=np.zeros(size, np.float32),
            cut=np.zeros(size, np.intp),
            cut_query=np.zeros(size, np.intp),
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
                self._changed.notify_all()
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
            try:
                self._score(chunk)
            finally:
                with self._changed:
                    self._under_way -= 1
                    self._changed.notify_all()

    def _take(self) -> _Chunk:
        """The next chunk; none when the queue is closed and empty. Requests take turns."""
        with self._changed:
            while not self._jobs or (self._under_way and not self._fills_a_chunk()):
                if self._closing and not self._jobs:
                    return []
                self._changed.wait()
            if not self._under_way:
                self._accounted = time.monotonic()
            self._under_way += 1
            budget, chunk, tokens = self._speed.chunk_tokens, _Chunk(), 0.0
            while self._jobs and tokens < budget:
                job = self._jobs.popleft()
                if job.next == 0:
                    waited = time.monotonic() - job.arrived
                    self.metrics.stage_seconds.labels("wait").observe(waited)
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
        self.metrics.chunk_fill.observe(tokens / budget)
        return chunk

    def _fills_a_chunk(self) -> bool:
        """Whether what nobody has taken is enough for one."""
        left = self._speed.chunk_tokens
        for job in self._jobs:
            for pair in islice(job.pairs, job.next, None):
                left -= self._tokens(pair)
                if left <= 0:
                    return True
        return False

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
            if all(job.over for job in jobs.values()):  # at their deadline, or gone
                return
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
        ended = time.monotonic()
        tokens = sum(len(row) for one in encoded for row in one.rows)
        with self._changed:  # time that two chunks share counts once
            now = time.monotonic()
            seconds, self._accounted = now - self._accounted, now
            self._speed.learn(seconds, len(pairs), tokens, sum(map(_characters, pairs)))
        self.metrics.scoring_seconds.labels(self.name).inc(seconds)
        self.metrics.stage_seconds.labels("encode").observe(between - began)
        self.metrics.stage_seconds.labels("score").observe(ended - between)
        self.metrics.chunk_pairs.observe(len(chunk))
        self.metrics.chunk_requests.observe(len(jobs))
        self._deliver(chunk, encoded, made)

    def _deliver(self, chunk: _Chunk, encoded: list[Encoded], made: Scored) -> None:
        finished = []
        with self._changed:
            for (job, place), one, score, cut, cut_query, best in zip(
                chunk,
                encoded,
                made.scores,
                made.cut.tolist(),
                made.cut_query.tolist(),
                made.best.tolist(),
                strict=True,
            ):
                if job.over:
                    continue
                job.outcome.scores[place] = score
                job.outcome.scored[place] = True
                job.outcome.cut[place] = cut
                job.outcome.cut_query[place] = cut_query
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
