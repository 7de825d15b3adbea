"""How fast a remote re-ranker answers: one request at a time, none of it from a cache."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from pydantic import Field

from secondlook.recipe import Settings
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from secondlook.score.remote_ranker import RemoteRanker

SIZES = (1, 10, 50)
_REPEATS = 5
_WORDS = 100  # of a document
_TEXT = "the look of day in a time and"


class RequestTiming(Settings):
    """How long requests of so many documents took, one after the other."""

    documents: int = Field(ge=1)
    seconds: tuple[float, ...] = Field(min_length=1)


class RemoteBench(Settings):
    """What `secondlook bench` measured of a remote re-ranker, and from where."""

    ranker: str
    machine: str
    """That asked."""
    measured: str
    """The date."""
    words: int = _WORDS
    """Of each document."""
    requests: tuple[RequestTiming, ...] = Field(min_length=1)
    cost: float = Field(0.0, ge=0)
    """Of the measurement, by the price in the address."""

    def to_json(self) -> str:
        """The text of the file."""
        return self.model_dump_json(indent=2) + "\n"

    def summary(self) -> str:
        """A line for each size of a request."""
        lines = [f"{self.ranker}, asked from {self.machine}, documents of {self.words} words"]
        for timing in self.requests:
            count = f"{timing.documents} document{'s' if timing.documents > 1 else ''}"
            lines.append(
                f"{count}: {1000 * median(timing.seconds):,.0f} ms median, "
                f"{1000 * max(timing.seconds):,.0f} ms at most, of {len(timing.seconds)} requests"
            )
        if self.cost:
            lines.append(f"the measurement cost {self.cost:.4g}")
        return "\n".join(lines)


def time_remote(
    ranker: RemoteRanker,
    machine: str,
    today: str,
    *,
    sizes: Sequence[int] = SIZES,
    clock: Callable[[], float] = perf_counter,
    advance: Callable[[int], None] = lambda _: None,
) -> RemoteBench:
    """Ask for texts of a hundred words in requests of each size; the first request is not timed.

    The ranker must have no cache, or later requests would be answered from there.
    """
    batch = ranker.client.address.batch
    timings = []
    ranker.score(_pairs(1))  # connects
    for size in dict.fromkeys(min(size, batch) for size in sizes):
        pairs, seconds = _pairs(size), []
        for _ in range(_REPEATS):
            began = clock()
            ranker.score(pairs)
            seconds.append(clock() - began)
        timings.append(RequestTiming(documents=size, seconds=tuple(seconds)))
        advance(1)
    return RemoteBench(
        ranker=ranker.name,
        machine=machine,
        measured=today,
        requests=tuple(timings),
        cost=ranker.usage.cost,
    )


def _pairs(count: int) -> list[tuple[Query, Document]]:
    """No two documents are the same text, which would be sent once."""
    text = " ".join([_TEXT] * (_WORDS // len(_TEXT.split())))
    query = Query("", "what is a second look")
    return [(query, Document("", f"{number} {text}")) for number in range(count)]
