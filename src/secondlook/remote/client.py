"""Asks a remote re-ranker: in batches, several at once, each pair of texts once only."""

from __future__ import annotations

import json
import logging
import threading
import time
import weakref
from concurrent.futures import wait
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from secondlook.errors import RemoteProblem, Unwritable
from secondlook.remote.address import is_loopback
from secondlook.remote.score_cache import ScoreCache, cache_file, digest
from secondlook.remote.sender import (
    DeadlinePassed,
    RequestRate,
    RetryPolicy,
    Sender,
    Spending,
    Unanswered,
    partial_answer,
)
from secondlook.remote.threads import RequestThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    import httpx

    from secondlook.remote.address import RemoteAddress

_LOGGER = logging.getLogger("secondlook.remote")
_LARGEST_SCORE = float(np.finfo(np.float32).max)
"""Scores become float32, where a larger one is infinite."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a remote re-ranker was asked so far."""

    requests: int = 0
    retries: int = 0
    documents: int = 0
    """Sent to it."""
    cached: int = 0
    """Scores that were there already."""
    cost: float = 0.0
    """By the price in the address; 0 where it has none."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Batch:
    query: str
    texts: tuple[str, ...]
    digests: tuple[bytes, ...]


class RemoteClient:
    """Scores texts by asking the service at an address. Threads may share it.

    The key is read from the environment when the client is made, and is kept nowhere else.
    """

    def __init__(
        self,
        address: RemoteAddress,
        *,
        cache: ScoreCache | None = None,
        transport: httpx.BaseTransport | None = None,
        policy: RetryPolicy | None = None,
        pause: Callable[[float], bool] | None = None,
    ) -> None:
        options = address.options
        self.address = address
        self.spending = Spending(
            (options.price_per_1000_searches or 0.0) / 1000,
            (options.price_per_1000_documents or 0.0) / 1000,
            options.max_cost,
        )
        self._identity = json.dumps(address.identity(), sort_keys=True)
        self._cache = cache
        """None: not opened yet, or not wanted."""
        key = address.key()
        self._sender = Sender(
            address.url,
            {"Authorization": f"Bearer {key}"} if key else {},
            timeout=options.timeout,
            connections=options.concurrent,
            trust_environment=not is_loopback(urlsplit(address.url).hostname or ""),
            policy=policy or RetryPolicy(attempts=options.attempts),
            rate=RequestRate(options.requests_per_minute),
            transport=transport,
            pause=pause,
        )
        # As many as connections: a request that is sent does not wait for one.
        self._threads = RequestThreads(options.concurrent)
        weakref.finalize(self, self._threads.close)
        self._requests, self._documents, self._cached, self._cost = 0, 0, 0, 0.0
        self._told_unwritable = False
        self._lock = threading.Lock()

    @property
    def usage(self) -> Usage:
        """Requests, documents and cost so far, by answers: none of them ever falls."""
        return Usage(
            self._requests, self._sender.retries, self._documents, self._cached, self._cost
        )

    def spend_with(self, other: RemoteClient) -> None:
        """Share the cost, and its limit, of another client of the same address."""
        if other.address == self.address:
            self.spending = other.spending

    def score(
        self,
        groups: Sequence[tuple[str, Sequence[str]]],
        *,
        until: float | None = None,
        unanswered: Unanswered | None = None,
    ) -> list[list[float]]:
        """The service's score of each text of each (query, texts), in the order given.

        Scores that came before a failure are kept, so that the same call goes on from there.
        Raises RemoteProblem where the service fails, or at `until`, of `time.monotonic()`;
        `unanswered` tells how long the service has been silent by then.
        """
        wanted = self._digests(groups)
        known = self._kept(wanted)
        with self._lock:
            self._cached += len(known)
        missing: dict[str, dict[bytes, str]] = {}
        for (query, texts), digests in zip(groups, wanted, strict=True):
            own = zip(digests, texts, strict=True)
            new = {one: text for one, text in own if one not in known}
            missing.setdefault(query, {}).update(new)
        for batch, scores in self._sent(list(self._batches(missing)), until, unanswered):
            known.update(zip(batch.digests, scores, strict=True))
        return [[known[one] for one in digests] for digests in wanted]

    def kept(self, groups: Sequence[tuple[str, Sequence[str]]]) -> list[list[float]] | None:
        """As `score`, of scores that are all kept; None where one is not. Nothing is sent."""
        wanted = self._digests(groups)
        known = self._kept(wanted)
        if not all(one in known for some in wanted for one in some):
            return None
        with self._lock:
            self._cached += len(known)
        return [[known[one] for one in digests] for digests in wanted]

    def open_cache(self) -> ScoreCache | None:
        """The cache, made when it is first used; None where the address wants none.

        Raises Unwritable where it cannot be made.
        """
        with self._lock:
            if self._cache is None and self.address.options.cache == "on":
                self._cache = ScoreCache(cache_file())
            return self._cache

    def _digests(self, groups: Sequence[tuple[str, Sequence[str]]]) -> list[list[bytes]]:
        return [[digest(self._identity, query, text) for text in texts] for query, texts in groups]

    def _kept(self, wanted: list[list[bytes]]) -> dict[bytes, float]:
        if (cache := self.open_cache()) is None:
            return {}
        return cache.get(list(dict.fromkeys(one for some in wanted for one in some)))

    def _keep(self, batch: _Batch, scores: list[float]) -> None:
        """Where that fails, the scores are there all the same: they may have been paid for."""
        if (cache := self.open_cache()) is None:
            return
        try:
            cache.put(zip(batch.digests, scores, strict=True))
        except Unwritable as problem:
            with self._lock:
                told, self._told_unwritable = self._told_unwritable, True
            if not told:
                _LOGGER.warning("%s", problem)

    def _batches(self, missing: dict[str, dict[bytes, str]]) -> list[_Batch]:
        size = self.address.batch
        return [
            _Batch(query, tuple(texts.values())[start : start + size], digests)
            for query, texts in missing.items()
            for start in range(0, len(texts), size)
            if (digests := tuple(texts)[start : start + size])
        ]

    def _sent(
        self, batches: list[_Batch], until: float | None, unanswered: Unanswered | None
    ) -> list[tuple[_Batch, list[float]]]:
        """Every batch with its scores; each is kept as soon as it is there.

        The client's threads take the batches of all callers, in the order they came.
        """
        failed = threading.Event()

        def ask(batch: _Batch) -> list[float]:
            if failed.is_set():
                raise RemoteProblem("another request failed")
            try:
                return self._ask(batch, until, unanswered)
            except BaseException:
                failed.set()
                raise

        futures: list[Future[list[float]]] = []
        try:
            futures.extend(self._threads.submit(partial(ask, batch)) for batch in batches)
            scores = [future.result(_seconds_left(until)) for future in futures]
        except BaseException as error:
            failed.set()
            if not isinstance(error, Exception):  # Ctrl-C: nothing is sent again
                self._sender.stop()
            under_way = [future for future in futures if not future.cancel()]
            wait(under_way, _seconds_left(until))  # they may be paid for: their scores are kept
            if isinstance(error, TimeoutError):
                place = self.address.place
                raise DeadlinePassed(f"no time is left for an answer of {place}") from error
            raise
        return list(zip(batches, scores, strict=True))

    def _ask(
        self, batch: _Batch, until: float | None, unanswered: Unanswered | None
    ) -> list[float]:
        api = self.address.api
        body = api.request(batch.query, batch.texts, self.address.options.model)
        reserved = self.spending.reserve(len(batch.texts))
        try:
            answer = self._sender.post(body, until, unanswered)
            scores = self._read(answer, len(batch.texts))
        except BaseException:
            self.spending.release(reserved)
            raise
        cost = self.spending.settle(reserved, api.billed_searches(answer))
        with self._lock:
            self._cost += cost
            self._requests += 1
            self._documents += len(batch.texts)
        self._keep(batch, scores)
        return scores

    def _read(self, answer: Any, count: int) -> list[float]:  # noqa: ANN401 - JSON
        """The scores in the order of the request; raises RemoteProblem for any other answer."""
        place = self.address.place
        if isinstance(answer, dict) and answer.get("partial"):  # a secondlook server says so
            raise RemoteProblem(partial_answer(place))
        try:
            scores = {_index(at): float(score) for at, score in self.address.api.scores(answer)}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RemoteProblem(
                f"the answer of {place} is not that of the API {self.address.shape!r}; name "
                "another before the address, as in jina+https://…"
            ) from error
        if sorted(scores) != list(range(count)):
            raise RemoteProblem(
                f"{place} gave {len(scores)} of {count} documents a score; a re-ranker must score "
                "all of them"
            )
        values = [scores[at] for at in range(count)]
        if not all(abs(value) <= _LARGEST_SCORE for value in values):
            raise RemoteProblem(f"{place} gave a score that is no number, or too large a one")
        if not self.address.gives_raw_scores and not all(0 <= value <= 1 for value in values):
            raise RemoteProblem(
                f"{place} gave scores beyond 0 and 1; if it gives raw scores, add scores=raw to "
                "the address"
            )
        return values

    def close(self) -> None:
        """Give up connections, threads and cache."""
        self._sender.close()
        self._threads.close()
        if self._cache is not None:
            self._cache.close()


def _index(given: Any) -> int:  # noqa: ANN401 - JSON
    """A document's place, which some services write as 1.0; raises ValueError for 0.7."""
    index = int(given)
    if index != given:
        raise ValueError(given)
    return index


def _seconds_left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())
