"""Requests to a remote service: sent again after a failure, not too fast, and not too dear."""

from __future__ import annotations

import json
import random
import threading
import time
import weakref
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from secondlook.errors import CostLimitReached, MissingExtra, RemoteProblem

try:
    import httpx
except ImportError as error:
    raise MissingExtra("remote", "a re-ranker behind a URL") from error

if TYPE_CHECKING:
    from collections.abc import Callable

_PASSING = frozenset({408, 425, 429})
"""Statuses below 500 that may be another the next time."""
_LASTING = frozenset({501, 505})
"""Statuses from 500 on that will be the same: others, as Cloudflare's 520 to 527, may pass."""
_WRONG_SHAPE = frozenset({400, 404, 405, 415, 422})
_FOR_THE_ANSWER = 0.5
"""The share of the time left that a request keeps for its answer when it waits for its turn."""
_TOLD = 300  # characters of an answer that a message repeats
_LARGEST_ANSWER = 32 * 2**20
"""Bytes of an answer at most. Some services repeat the documents in it."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is sent, and how long to wait in between.

    The wait doubles each time and is shortened by up to a half at random, so that many clients do
    not come back at once; a Retry-After of the server counts instead.
    """

    attempts: int = 6
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_asked_wait: float = 300.0
    """Of a Retry-After; a server that asks for more has failed."""

    def wait(self, failures: int, share: float) -> float:
        """Seconds to wait after so many failures; `share` is a random number from 0 to 1."""
        doubled = self.first_wait * 2.0 ** (failures - 1)
        return min(doubled, self.longest_wait) * (1 - share / 2)


class RateLimitReached(RemoteProblem):
    """A request was not sent: by the user's limit of requests per minute its turn is too late."""


class DeadlinePassed(RemoteProblem):
    """The time a caller gave was over before a request was sent, or before it was answered."""


class Unanswered:
    """Since when the requests of one call have been sent without an answer. Threads may share it.

    A request that is sent again has been waiting since it was first sent.
    """

    def __init__(self) -> None:
        self._since: list[float] = []
        self._lock = threading.Lock()

    def sent(self) -> float:
        """Count a request from now on; `answered` wants the moment that this gives."""
        now = time.monotonic()
        with self._lock:
            self._since.append(now)
        return now

    def answered(self, since: float) -> None:
        """Count that request no longer."""
        with self._lock:
            self._since.remove(since)

    def seconds(self) -> float:
        """For how long the service has been silent about the oldest; 0 where all are answered."""
        with self._lock:
            return time.monotonic() - min(self._since) if self._since else 0.0


@dataclass
class RequestRate:
    """Lets requests pass at an even pace, from any number of threads."""

    per_minute: float | None
    clock: Callable[[], float] = time.monotonic
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, until: float | None = None) -> float:
        """How many seconds to wait before the next request, whose turn is now taken.

        Raises RateLimitReached, and takes none, where it would come at `until` or later.
        """
        if self.per_minute is None:
            return 0.0
        with self._lock:
            now = self.clock()
            turn = max(now, self._next)
            if until is not None and turn >= until:
                raise RateLimitReached(
                    f"no time is left: at {self.per_minute:g} requests per minute, the next one is "
                    f"sent in {turn - now:.1f} s"
                )
            self._next = turn + 60.0 / self.per_minute
            return turn - now


@dataclass
class Spending:
    """What requests cost, those under way included, and whether the next may be sent."""

    per_search: float = 0.0
    per_document: float = 0.0
    limit: float | None = None
    cost: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, documents: int) -> float:
        """Count a request of so many documents; raises CostLimitReached where it is too dear."""
        price = self.per_search + self.per_document * documents
        with self._lock:
            if self.limit is not None and self.cost + price > self.limit:
                raise CostLimitReached(
                    f"stopped before spending more than {self.limit:g}: requests so far cost "
                    f"{self.cost:.4g}. Their scores are kept; to go on, give a higher max_cost= in "
                    "the address and repeat the command"
                )
            self.cost += price
        return price

    def settle(self, reserved: float, billed_searches: float | None) -> float:
        """What an answered request cost: what was reserved, or what the answer says was billed."""
        if billed_searches is None or not self.per_search:
            return reserved
        price = billed_searches * self.per_search
        with self._lock:
            self.cost += price - reserved
        return price

    def release(self, reserved: float) -> None:
        """A request that failed costs nothing."""
        with self._lock:
            self.cost -= reserved


class Sender:
    """Posts JSON to one URL. Threads may share it.

    `headers` hold the key; no message repeats them, nor any text that was sent.
    """

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        *,
        timeout: float,
        connections: int,
        trust_environment: bool,
        policy: RetryPolicy | None = None,
        rate: RequestRate | None = None,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], bool] | None = None,
    ) -> None:
        self.url, self.place = url, url.partition("?")[0]
        self.retries = 0
        """Requests that were sent again."""
        self._timeout = timeout
        self._policy, self._rate = policy or RetryPolicy(), rate or RequestRate(None)
        self._stopping, self._closed = threading.Event(), False
        """The event is that of the requests under way."""
        self._pause = pause
        self._http = httpx.Client(
            headers=headers,
            limits=httpx.Limits(max_connections=connections),
            follow_redirects=False,  # a key goes nowhere but where the user said
            trust_env=trust_environment,
            transport=transport,
        )
        weakref.finalize(self, self._http.close)  # at the latest when nobody holds it any longer

    def stop(self) -> None:
        """Requests under way are not sent again; those that wait for that fail now."""
        stopping, self._stopping = self._stopping, threading.Event()
        stopping.set()

    def close(self) -> None:
        """Stop, send nothing any longer, and give up the connections."""
        self._closed = True
        self.stop()
        self._http.close()

    def post(
        self, body: dict[str, Any], until: float | None = None, unanswered: Unanswered | None = None
    ) -> Any:  # noqa: ANN401 - JSON
        """The answer's JSON; raises RemoteProblem after the last attempt or at `until`.

        `until` is a moment of `time.monotonic()`. Raises RateLimitReached where nothing was sent,
        and DeadlinePassed where nothing was sent or the first answer was late; `unanswered` is told
        which.
        """
        stopping, unanswered = self._stopping, unanswered or Unanswered()
        turn = self._rate.reserve(_latest(until))
        self._wait(turn, until, "the request was not sent", stopping, DeadlinePassed)
        failures, since = 0, unanswered.sent()
        while True:
            left = self._timeout if until is None else min(self._timeout, until - time.monotonic())
            try:
                answer, content = self._exchange(body, max(left, 0.001))
            except (httpx.LocalProtocolError, httpx.InvalidURL) as error:
                # Never right the next time, and the message repeats the header that holds the key.
                kind = type(error).__name__
                raise RemoteProblem(f"no request to {self.place} can be sent: {kind}") from None
            except httpx.HTTPError as error:
                problem, asked, told = f"{self.place} did not answer: {_reason(error)}", None, ""
                late = isinstance(error, httpx.TimeoutException) and left < self._timeout
                if late and failures == 0:
                    raise DeadlinePassed(self._no_time(problem)) from error
            else:
                if answer.headers.get("X-Secondlook-Partial"):
                    raise RemoteProblem(partial_answer(self.place))
                if answer.is_success:
                    unanswered.answered(since)
                    return self._json(content)
                problem, asked = self._refusal(answer), _retry_after(answer)
                told = _told(answer, content)
                if not _may_pass(answer.status_code):
                    raise RemoteProblem(problem, told)
            failures += 1
            if failures >= self._policy.attempts:
                raise RemoteProblem(f"{problem} (tried {failures} times)", told)
            wait = self._policy.wait(failures, random.random()) if asked is None else asked  # noqa: S311 - no secret
            if wait > self._policy.longest_asked_wait:
                raise RemoteProblem(f"{problem}; it asks to wait for {wait:,.0f} s", told)
            self._wait(wait, until, problem, stopping)
            try:
                turn = self._rate.reserve(_latest(until))
            except RateLimitReached as limit:  # what the service did is the reason, not the limit
                raise RemoteProblem(f"{problem}; {limit}") from limit
            self.retries += 1
            self._wait(turn, until, problem, stopping)

    def _exchange(self, body: dict[str, Any], seconds: float) -> tuple[httpx.Response, bytes]:
        """One request, its answer and that answer's content.

        Raises httpx.HTTPError where that fails or, in time, is not complete: httpx itself bounds
        each read, and a service may send a byte now and then.
        """
        end, content = time.monotonic() + seconds, bytearray()
        with self._http.stream("POST", self.url, json=body, timeout=seconds) as answer:
            for chunk in answer.iter_bytes():
                content += chunk
                if len(content) > _LARGEST_ANSWER:
                    raise RemoteProblem(
                        f"{self.place} answered with more than {_LARGEST_ANSWER // 2**20} MB; send "
                        "fewer documents at once: #batch=N at the end of the address"
                    )
                if time.monotonic() > end:
                    raise httpx.ReadTimeout("its answer was not complete in time")
        return answer, bytes(content)

    def _wait(
        self,
        seconds: float,
        until: float | None,
        problem: str,
        stopping: threading.Event,
        late: type[RemoteProblem] = RemoteProblem,
    ) -> None:
        if until is not None and time.monotonic() + seconds >= until:
            raise late(self._no_time(problem))
        pause = self._pause or stopping.wait
        if self._closed or stopping.is_set() or (seconds > 0 and pause(seconds)):
            raise RemoteProblem(f"stopped: {problem}")

    def _no_time(self, problem: str) -> str:
        return f"no time is left to ask {self.place}: {problem}"

    def _json(self, content: bytes) -> Any:  # noqa: ANN401 - JSON
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:  # the latter for lists in lists in lists …
            raise RemoteProblem(
                f"{self.place} answered with something that is no JSON; is the address that of a "
                "rerank API?"
            ) from error

    def _refusal(self, answer: httpx.Response) -> str:
        status = f"{answer.status_code} {answer.reason_phrase}".strip()
        problem = f"{self.place} answered {status}"
        if answer.status_code in (401, 403):
            return (
                f"{problem}. Does it need an API key? Name the environment variable that holds it "
                "at the end of the address: #key=VARIABLE"
            )
        if answer.status_code == 413:
            return f"{problem}. Send fewer documents at once: #batch=N at the end of the address"
        if answer.is_redirect:
            return f"{problem}. Redirects are not followed: give the address it leads to"
        if answer.status_code in _WRONG_SHAPE:
            return (
                f"{problem}. Is it another API? Name it before the address, as in jina+{self.place}"
            )
        return problem


def _told(answer: httpx.Response, content: bytes) -> str:
    """The beginning of what the service says, in one line."""
    text = content[: 4 * _TOLD].decode(answer.encoding or "utf-8", "replace")
    return " ".join(text[:_TOLD].split())


def _may_pass(status: int) -> bool:
    """Whether a request that was refused so may be answered the next time."""
    return status in _PASSING or (status >= 500 and status not in _LASTING)


def _latest(until: float | None) -> float | None:
    """The latest turn of a request, which would be sent in vain just before its deadline."""
    if until is None:
        return None
    now = time.monotonic()
    return now + (until - now) * (1 - _FOR_THE_ANSWER)


def partial_answer(place: str) -> str:
    """What a server's answer without all scores means for its client: no score can be used."""
    return (
        f"{place} answered before it had scored all documents; give it a longer deadline, or send "
        "fewer at once: #batch=N at the end of the address"
    )


def _retry_after(answer: httpx.Response) -> float | None:
    """Seconds, which the header gives as a number or as a date."""
    header = answer.headers.get("Retry-After", "").strip()
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _reason(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
