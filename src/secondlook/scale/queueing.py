"""What requests wait: a simulation of discrete events, for averages know nothing of a p99.

Times are seconds. Closed forms of queueing theory hold the simulation to account in the tests.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scoring:
    """How one server scores: chunk by chunk, each of pairs of as many requests as fit.

    That is the discipline of `serve/queue.py`: requests take turns of `turn` pairs, a chunk is
    scored as a whole, and a request is answered when the chunk with its last pair is done.
    """

    fixed: float
    """Seconds that a chunk takes, whatever is in it."""
    pair: float
    """Seconds that each of its pairs adds."""
    chunk: int
    """Pairs in a full one."""
    turn: int = 16
    jitter: float = 0.0
    """Standard deviation of a chunk's time over its mean."""
    request: float = 0.0
    """Seconds that a request takes from scoring, whatever its pairs: HTTP has the same cores."""

    def alone(self, pairs: int) -> float:
        """Seconds for a request that finds the server idle: no p99 can be less."""
        return -(-pairs // self.chunk) * self.fixed + pairs * self.pair + self.request

    def capacity(self, pairs: int) -> float:
        """Requests per second at most: every chunk is full."""
        return 1 / (pairs * (self.fixed / self.chunk + self.pair) + self.request)


def poisson(rate: float, requests: int, rng: np.random.Generator) -> Times:
    """When requests come that know nothing of each other."""
    return np.cumsum(rng.exponential(1 / rate, requests))


def pool(arrivals: Times, seconds: Times, servers: int) -> Times:
    """When each request is done: first come, first served, by whichever server is free first."""
    free = [0.0] * servers
    done = np.empty(len(arrivals))
    for at, (came, takes) in enumerate(zip(arrivals.tolist(), seconds.tolist(), strict=True)):
        done[at] = max(came, free[0]) + takes
        heapreplace(free, done[at])
    return done


def fleet(
    arrivals: Times,
    pairs: int,
    scoring: Scoring,
    servers: int,
    rng: np.random.Generator,
    slowness: Callable[[float], float] = lambda _: 1.0,
) -> Times:
    """When each request of `pairs` pairs is done; `arrivals` ascend.

    A balancer gives each request to the server with the fewest requests in hand. `slowness` is the
    factor by which a chunk that begins at that moment takes longer: machines have slow minutes.
    """
    noise = _noise(scoring.jitter, rng)
    waiting: list[deque[list[int]]] = [deque() for _ in range(servers)]  # [request, pairs left]
    answered: list[list[int]] = [[] for _ in range(servers)]
    in_hand = [0] * servers
    idle = set(range(servers))
    ends: list[tuple[float, int]] = []
    done = np.empty(len(arrivals))

    def start(server: int, now: float) -> None:
        size, answered[server] = _take(waiting[server], scoring)
        takes = scoring.fixed + size * scoring.pair + len(answered[server]) * scoring.request
        heappush(ends, (now + takes * slowness(now) * next(noise), server))

    def end() -> None:
        now, server = heappop(ends)
        done[answered[server]] = now
        in_hand[server] -= len(answered[server])
        if waiting[server]:
            start(server, now)
        else:
            idle.add(server)

    for request, came in enumerate(arrivals.tolist()):
        while ends and ends[0][0] <= came:
            end()
        server = idle.pop() if idle else in_hand.index(min(in_hand))
        in_hand[server] += 1
        waiting[server].append([request, pairs])
        if in_hand[server] == 1:
            start(server, came)
    while ends:
        end()
    return done


def _take(waiting: deque[list[int]], scoring: Scoring) -> tuple[int, list[int]]:
    """The next chunk: how many pairs, and the requests it finishes."""
    room, finished = scoring.chunk, []
    while waiting and room:
        job = waiting.popleft()
        turn = min(scoring.turn, job[1])
        taken = min(turn, room)
        job[1] -= taken
        room -= taken
        if not job[1]:
            finished.append(job[0])
        elif taken < turn:  # the chunk is full in the middle of its turn
            waiting.appendleft(job)
        else:
            waiting.append(job)
    return scoring.chunk - room, finished


def _noise(jitter: float, rng: np.random.Generator) -> Iterator[float]:
    """Log-normal factors of mean 1."""
    if not jitter:
        yield from repeat(1.0)
    spread = float(np.sqrt(np.log1p(jitter**2)))
    while True:
        yield from rng.lognormal(-(spread**2) / 2, spread, 4096).tolist()
