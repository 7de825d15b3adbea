"""What a server serves: rankers by name, perhaps an index, and the rules for both."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from secondlook.errors import (
    EngineProblem,
    QueryRefused,
    SecondlookError,
    UnknownName,
    WrongArgument,
)
from secondlook.score.open_ranker import unused_scores_advice
from secondlook.score.remote_ranker import RemoteRanker
from secondlook.serve.body import BytesInFlight
from secondlook.serve.breaker import Breaker
from secondlook.serve.by_vectors import VectorScoring
from secondlook.serve.keys import Keys
from secondlook.serve.limits import Limits
from secondlook.serve.logs import LOGGER, note, reason_of
from secondlook.serve.metrics import Metrics
from secondlook.serve.problems import Refused
from secondlook.serve.queue import ScoringQueue
from secondlook.serve.second_stage import SecondStage
from secondlook.serve.spans import span
from secondlook.serve.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from starlette.types import Receive

    from secondlook.explain import Mark
    from secondlook.retrieve.search_options import SearchOptions
    from secondlook.score.open_ranker import AnyRanker
    from secondlook.serve.index import ServedIndex
    from secondlook.serve.remote_queue import RemoteQueue
    from secondlook.types import Document, Query, Ranking

T = TypeVar("T")

_ANSWERING = 0.05
"""The share of a deadline that is kept for putting the answer together and sending it."""

_SEARCHES_AT_ONCE = 16
"""Threads that may wait for the engine. One that hangs is missing until it comes back."""

_PATIENCE = 0.5
"""The share of the server's deadline after which silence is the engine's fault: clients in a hurry
must not make it look broken to all others."""


class Explainer(Protocol):
    """Says why a document scored as it did."""

    def explain(
        self,
        ranker: AnyRanker,
        query: Query,
        document: Document,
        should_stop: Callable[[], bool],
        until: float,
    ) -> dict[str, Any]:
        """What there is to say, as JSON; raises once `should_stop` says so.

        No other service is waited for beyond `until`, of `time.monotonic()`.
        """
        ...

    def mark(
        self,
        ranker: AnyRanker,
        query: str,
        texts: Sequence[str],
        should_stop: Callable[[], bool],
    ) -> tuple[list[Mark], list[list[Mark]]]:
        """The words to point out in the query and in each text."""
        ...


@dataclass(frozen=True, slots=True)
class Explained:
    """Explanations of the first documents."""

    said: tuple[dict[str, Any], ...]
    failure: str | None = None
    """Why there are no more, where that was not the deadline."""


@dataclass(eq=False)
class Serving:
    """Everything the routes need.

    `sources` are where rankers come from, by name; the first is the default. `load` makes a ranker
    of a source, now and whenever they are loaded anew; `keys_file` is read likewise.
    """

    sources: Mapping[str, str]
    load: Callable[[str], AnyRanker]
    index: ServedIndex | None = None
    limits: Limits = field(default_factory=Limits)
    keys_file: Path | None = None
    hosts: frozenset[str] | None = None
    """Host names it answers to, without port; None is any."""
    explainer: Explainer | None = None
    log_texts: bool = False
    score_warnings: bool = True
    """Whether answers of rerank APIs warn of scores that were not calibrated on judgments."""
    metrics: Metrics = field(default_factory=Metrics)
    breaker: Breaker = field(default_factory=Breaker)
    draining: bool = False

    def __post_init__(self) -> None:
        self.keys = Keys.read(self.keys_file) if self.keys_file is not None else None
        self.in_flight = BytesInFlight(self.limits.bytes_in_flight)
        self._stored = VectorScoring(self.index) if self.index is not None else None
        self.queues = {
            name: self._queue(name, self._ranker(at)) for name, at in self.sources.items()
        }
        self._engine = Threads(_SEARCHES_AT_ONCE if self.index is not None else 0)
        self.second_stage = SecondStage(
            self.queues, self.sources, self._stored, self._engine, self.metrics
        )
        # One each, so that scoring keeps its cores, and quick marks do not wait for explanations.
        self._explaining, self._marking = Threads(1), Threads(1)
        self._retired: set[asyncio.Task[None]] = set()

    @property
    def engine_state(self) -> Literal["ok", "failing"] | None:
        """Of the search engine; None where there is no index."""
        if self.index is None:
            return None
        return "failing" if self.breaker.failing or not self.index.is_open else "ok"

    @property
    def default(self) -> str:
        """The ranker of requests that name none."""
        return next(iter(self.sources))

    def name_of(self, model: str | None) -> str:
        """The ranker a request means. Where there is only one, it answers to any name."""
        if model in self.queues:
            return model
        if model is None or len(self.queues) == 1:
            return self.default
        raise Refused(404, f"no model {model!r}; this server has: {', '.join(self.queues)}")

    def until(self, wanted: float | None) -> float:
        """When a request's scoring must end; clients may want less time than the server gives."""
        seconds = min(wanted or self.limits.deadline, self.limits.deadline)
        return time.monotonic() + seconds * (1 - _ANSWERING)

    async def first_look(
        self, query: Query, depth: int, until: float, options: SearchOptions
    ) -> tuple[Ranking, list[Document]]:
        """The engine's hits and their texts; Refused with 503 or 504 where it fails.

        With 422 where it takes no such options, or does not understand them.
        """
        index = self.index
        if index is None:
            raise Refused(404, "this server has no index: start it with --index INDEX")
        if not self.breaker.admit():
            raise Refused(
                503,
                "the search engine keeps failing and is left alone for a while",
                retry_after=max(1, round(self.breaker.rest)),
            )

        def look() -> tuple[Ranking, list[Document]]:
            began = time.monotonic()
            ranking, texts, seconds = index.look(query, depth, options)
            fetched = time.monotonic() - began - seconds
            self.metrics.stage_seconds.labels("first_look").observe(seconds)
            self.metrics.stage_seconds.labels("fetch").observe(fetched)
            return ranking, texts

        began = time.monotonic()
        try:
            with span("first look"):
                found = await asyncio.wait_for(self._engine.run(look), until - time.monotonic())
        except TimeoutError as error:
            if time.monotonic() - began >= _PATIENCE * self.limits.deadline:
                self._engine_failed("timeout")
            else:
                self.breaker.left()
            raise Refused(504, "the search engine did not answer in time", 1) from error
        except (QueryRefused, WrongArgument, UnknownName) as error:
            self.breaker.left()
            reason = error.reason if isinstance(error, QueryRefused) else str(error)
            raise Refused(422, reason) from error
        except SecondlookError as error:
            self._engine_failed(type(error).__name__)
            raise Refused(503, f"the search engine failed: {_for_clients(error)}", 1) from error
        except BaseException:
            self.breaker.left()
            raise
        self.breaker.succeeded()
        self.metrics.engine_open.set(0)
        return found

    async def explain(
        self, ranker: AnyRanker, query: Query, documents: Sequence[Document], until: float
    ) -> Explained:
        """Why the documents scored as they did: of the first ones, as many as can be until then.

        The work ends soon after, and when the client goes away: nobody waits behind it.
        """
        explainer, over = self._asked(), threading.Event()
        said: list[dict[str, Any]] = []

        def work() -> None:
            said.extend(
                explainer.explain(ranker, query, document, over.is_set, until)
                for document in documents
            )

        failure = None
        try:
            await asyncio.wait_for(self._explaining.run(work), until - time.monotonic())
        except TimeoutError:
            pass
        except SecondlookError as error:
            LOGGER.error("explaining failed", extra={"facts": {"problem": reason_of(error)}})
            failure = "explaining failed; the server's log says why"
        finally:
            over.set()
        return Explained(tuple(said), failure)  # the work may end one more meanwhile

    async def mark(
        self, ranker: AnyRanker, query: Query, texts: Sequence[str], until: float
    ) -> tuple[list[Mark], list[list[Mark]]]:
        """The words to point out in the query and in each text; TimeoutError where it is late."""
        explainer, over = self._asked(), threading.Event()
        work = self._marking.run(lambda: explainer.mark(ranker, query.text, texts, over.is_set))
        try:
            return await asyncio.wait_for(work, until - time.monotonic())
        finally:
            over.set()

    def _asked(self) -> Explainer:
        if self.explainer is None:
            raise Refused(422, "this server explains nothing: ask without `explain` and `marks`")
        return self.explainer

    async def reload(self) -> None:
        """Load keys, index and every ranker anew. Requests under way end with the old ones.

        What cannot be loaded is told in the log, and the old one serves on.
        """
        if self.keys_file is not None:
            read = functools.partial(Keys.reread, self.keys_file)
            self.keys = await self._loaded("keys", read) or self.keys
        if self.index is not None:
            await self._loaded("index", self.index.reopen)
        for name, source in self.sources.items():
            load = functools.partial(self._ranker, source)
            if (ranker := await self._loaded(name, load)) is None:
                continue
            old = self.queues[name]
            if isinstance(ranker, RemoteRanker) and isinstance(old.ranker, RemoteRanker):
                ranker.client.spend_with(old.ranker.client)
            self.queues[name] = self._queue(name, ranker)
            retired = asyncio.create_task(old.drained())
            self._retired.add(retired)
            retired.add_done_callback(self._retired.discard)
        self.note_unused_scores()

    async def _loaded(self, what: str, load: Callable[[], T]) -> T | None:
        """What was loaded, in a thread; None where that failed."""
        try:
            loaded = await asyncio.to_thread(load)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the new, the old serves on
            self.metrics.reloads.labels("failed").inc()
            LOGGER.exception("reload failed", extra={"facts": {"what": what}}, exc_info=error)
            return None
        self.metrics.reloads.labels("done").inc()
        note("reloaded", what=what)
        return loaded

    def note_unused_scores(self) -> None:
        """Tell in the log of re-rankers whose scores change no order of a search."""
        if self.index is None:
            return
        for name, queue in self.queues.items():
            if advice := unused_scores_advice(self.sources[name], queue.ranker):
                facts = {"model": name, "advice": advice}
                LOGGER.warning("a re-ranker without weight", extra={"facts": facts})

    async def drain(self, seconds: float) -> bool:
        """Whether nothing waits for a score any longer, after so many seconds at most.

        Nothing can be asked of it then: its threads have ended, or end.
        """
        queues = (queue.drained() for queue in self.queues.values())
        try:
            await asyncio.wait_for(asyncio.gather(*queues, *self._retired), seconds)
        except TimeoutError:
            return False
        finally:
            for threads in (self._engine, self._explaining, self._marking):
                threads.close()
        return True

    def _ranker(self, source: str) -> AnyRanker:
        ranker = self.load(source)
        if isinstance(ranker, RemoteRanker):
            ranker.client.open_cache()  # where it cannot be kept, that is refused now
        else:
            if self._stored is not None:
                self._stored.loaded(source, ranker)
            _ = ranker.scale  # fitted now where the checkpoint has none, not in the first request
        return ranker

    def _queue(self, name: str, ranker: AnyRanker) -> ScoringQueue | RemoteQueue:
        if isinstance(ranker, RemoteRanker):
            from secondlook.serve.remote_queue import RemoteQueue  # needs the extra `remote`

            return RemoteQueue(ranker, name, self.limits.queue_pairs, self.metrics)
        return ScoringQueue(ranker, name, self.limits.queue_pairs, self.metrics)

    def _engine_failed(self, kind: str) -> None:
        self.breaker.failed()
        self.metrics.engine_errors.labels(kind).inc()
        self.metrics.engine_open.set(self.breaker.state != "closed")


def _for_clients(error: SecondlookError) -> str:
    """Where the cluster is, and how it is reached, is for the log alone."""
    LOGGER.error("first stage failed", extra={"facts": {"problem": str(error)}})
    return "it refused or cannot be reached" if isinstance(error, EngineProblem) else "no index"


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; cancelled, and Refused with 499, when the client goes away."""
    working, gone = asyncio.create_task(work), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Refused(499, "the client went away")
    finally:
        working.cancel()
        gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
