"""What this machine does in a second: the measurements a plan is built on."""

from __future__ import annotations

import json
from itertools import islice, pairwise
from random import Random
from statistics import fmean, median, pstdev
from time import perf_counter
from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from secondlook.errors import MalformedInput, SecondlookError, UnknownName
from secondlook.recipe import Settings
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from secondlook.score.ranker import Ranker
    from secondlook.types import Pair, Retriever

LENGTHS = (32, 64, 128, 256, 512)
SIZES = (1, 4, 16, 64)
_ENOUGH_SECONDS = 2.0  # of one length and size; slow ones are repeated twice, quick ones often
_REPEATS = 9
_TURNS = 5
_REQUESTS = 32  # at once, which keep a server busy
_WORDS = ("the", "look", "of", "day", "in", "a", "time", "and")


class Timing(Settings):
    """How long scoring so many pairs of so many tokens took, time after time."""

    length: int = Field(ge=1)
    pairs: int = Field(ge=1)
    seconds: tuple[float, ...] = Field(min_length=1)


class Engine(Settings):
    """A back end at a precision, and its timings."""

    name: str
    """As in `openvino bf16`."""
    timings: tuple[Timing, ...]

    @model_validator(mode="after")
    def _two_sizes(self) -> Self:
        lengths = {timing.length for timing in self.timings}
        if any(len({t.pairs for t in self.timings if t.length == at}) < 2 for at in lengths):
            raise ValueError(
                "each length needs two sizes, to tell a chunk's cost from its pairs'; measure anew "
                "with `secondlook bench`"
            )
        return self

    @property
    def longest(self) -> int:
        """The longest pairs it was timed with, in tokens."""
        return max(timing.length for timing in self.timings)

    def costs(self, length: float) -> tuple[float, float]:
        """Seconds of a chunk, and of each pair in it, for pairs of `length` tokens.

        Through the medians of each length goes the straight line of least squares, weighed by 1/t
        so that all sizes count alike; between lengths it is interpolated.
        """
        if length > self.longest:
            raise SecondlookError(
                f"{self.name} was timed up to {self.longest} tokens, not {length:g}; measure a "
                "ranker that reads so many, or plan for shorter texts"
            )
        lengths = sorted({timing.length for timing in self.timings})
        lines = [self._line(at) for at in lengths]
        fixed, pair = (np.interp(length, lengths, column) for column in zip(*lines, strict=True))
        return float(fixed), float(pair)

    def _line(self, length: int) -> tuple[float, float]:
        points = [(t.pairs, median(t.seconds)) for t in self.timings if t.length == length]
        pairs, took = np.array(points).T
        weighed = np.stack([1 / took, pairs / took], axis=1)
        fixed, pair = np.linalg.lstsq(weighed, np.ones(len(took)), rcond=None)[0]
        if fixed < 0:  # then a line through the origin
            fixed, pair = 0.0, float((pairs / took).sum() / ((pairs / took) ** 2).sum())
        return float(fixed), max(float(pair), 1e-9)

    def pairs_per_second(self, length: float) -> float:
        """In full chunks."""
        return 1 / self.costs(length)[1]

    @property
    def jitter(self) -> float:
        """Standard deviation over mean, of the same work done again."""
        again = [t.seconds for t in self.timings if len(t.seconds) > 2]
        return fmean([pstdev(some) / fmean(some) for some in again]) if again else 0.0


class FirstLook(Settings):
    """An engine of the first stage, of one index."""

    name: str
    documents: int = Field(ge=1)
    query_seconds: float = Field(gt=0)
    """Of one core, for one query over all these documents, the mean."""
    jitter: float = Field(0.0, ge=0)
    """Standard deviation over mean, over queries."""
    index_bytes: float = Field(gt=0)
    """Of one document in the index, text included."""


class Bench(Settings):
    """What `secondlook bench` measured, and where."""

    ranker: str
    machine: str
    cores: float = Field(gt=0)
    memory_gb: float = Field(gt=0)
    load: float | None = None
    """The machine's load average before: above 0 others were at work, and figures are low."""
    measured: str
    """The date."""
    ranker_bytes: int = Field(ge=0)
    engines: tuple[Engine, ...] = Field(min_length=1)
    request_seconds: float | None = None
    """What a request takes longer than scoring it; None where no server was asked."""
    busy_request_seconds: float = Field(0.0, ge=0)
    """How much later a busy server is done for each request, beside scoring."""
    first_look: FirstLook | None = None

    def to_json(self) -> str:
        """The text of the file that `read_bench` reads."""
        return self.model_dump_json(indent=2) + "\n"

    def engine(self, name: str | None) -> Engine:
        """The one of that name; without a name the one with the most pairs per second."""
        if name is None:
            shortest = min(engine.longest for engine in self.engines)
            return max(self.engines, key=lambda e: e.pairs_per_second(min(128, shortest)))
        for engine in self.engines:
            if engine.name == name:
                return engine
        raise UnknownName("engine in the bench", name, [engine.name for engine in self.engines])


def read_bench(path: Path) -> Bench:
    """What a bench.json says."""
    try:
        return Bench.model_validate(json.loads(path.read_text("utf-8")))
    except FileNotFoundError as error:
        raise MalformedInput(
            path, None, f"no such file; make it with: secondlook bench RANKER -o {path}"
        ) from error
    except (ValidationError, ValueError) as error:
        raise MalformedInput(path, None, f"not what `secondlook bench` writes: {error}") from error


def time_ranker(
    ranker: Ranker,
    name: str,
    *,
    lengths: Sequence[int] = LENGTHS,
    sizes: Sequence[int] = SIZES,
    enough: float = _ENOUGH_SECONDS,
    clock: Callable[[], float] = perf_counter,
    advance: Callable[[int], None] = lambda _: None,
) -> Engine:
    """Score texts of each length in groups of each size, from text to score."""
    timings = []
    longest = ranker.settings.encode.max_length
    for length in [at for at in lengths if at < longest] + [longest]:
        pair = pair_of(ranker, length)
        read = sum(len(row) for row in ranker.encode([pair])[0].rows)
        pairs = _alike(pair)
        for size in sizes:
            seconds = _again(ranker, pairs, size, enough, clock)
            timings.append(Timing(length=read, pairs=size, seconds=seconds))
            advance(1)
    return Engine(name=name, timings=tuple(timings))


def pair_of(ranker: Ranker, length: int) -> Pair:
    """A query and a document that the ranker reads as `length` tokens, as near as words allow."""
    query = Query("", "what is a second look")

    def text(count: int) -> str:
        return " ".join(_WORDS[at % len(_WORDS)] for at in range(count))

    def read(count: int) -> int:
        return sum(len(row) for row in ranker.encode([(query, Document("", text(count)))])[0].rows)

    low, high = 1, length
    while low < high:  # the fewest words that reach it
        middle = (low + high) // 2
        if read(middle) < length:
            low = middle + 1
        else:
            high = middle
    return query, Document("", text(low))


def _alike(pair: Pair) -> Iterator[Pair]:
    """Pairs of as many tokens, no two the same: equal ones are computed once, and kept."""
    query, document = pair
    words, rng = document.text.split(), Random(0)  # noqa: S311 - no secret
    while True:
        rng.shuffle(words)
        yield query, Document("", " ".join(words))


def time_first_look(
    retriever: Retriever,
    queries: Sequence[Query],
    k: int,
    *,
    name: str,
    documents: int,
    size: int,
    clock: Callable[[], float] = perf_counter,
) -> FirstLook:
    """Ask one query after the other, after one that warms the caches."""
    retriever.retrieve(queries[:1], k)
    moments = [clock()]
    for query in queries:
        retriever.retrieve([query], k)
        moments.append(clock())
    took = [after - before for before, after in pairwise(moments)]
    return FirstLook(
        name=name,
        documents=documents,
        query_seconds=fmean(took),
        jitter=pstdev(took) / fmean(took),
        index_bytes=size / documents,
    )


def time_server(
    ask: Callable[[int, int], object], ranker: Ranker, pair: Pair, documents: int
) -> tuple[float, float]:
    """What HTTP adds to the wait for one document, and to each of many requests at once.

    `ask` sends so many requests of so many documents, all the pair's, at once and waits for the
    last answer.
    """
    ask(_REQUESTS, documents)  # the server learns how much is a chunk
    alone = time_requests(lambda: ask(1, 1), lambda: ranker.score([pair]), 1)
    pairs = [pair] * (_REQUESTS * documents)
    busy = time_requests(lambda: ask(_REQUESTS, documents), lambda: ranker.score(pairs), _REQUESTS)
    return alone, busy


def time_requests(
    ask: Callable[[], object],
    score: Callable[[], object],
    requests: int,
    *,
    clock: Callable[[], float] = perf_counter,
) -> float:
    """By how much each request makes a busy server later than scoring alone would.

    `ask` sends so many requests at once and waits for the last answer, `score` scores the same
    pairs here. They take turns, for a machine's speed changes, and the median of each counts.
    """
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(_TURNS):
        for work, seconds in zip((ask, score), took, strict=True):
            began = clock()
            work()
            seconds.append(clock() - began)
    served, scored = map(median, took)
    return max(0.0, (served - scored) / requests)


def _again(
    ranker: Ranker, pairs: Iterator[Pair], size: int, enough: float, clock: Callable[[], float]
) -> tuple[float, ...]:
    ranker.score(list(islice(pairs, size)))  # memory is taken and code compiled the first time
    took: list[float] = []
    while len(took) < _REPEATS and (len(took) < 2 or sum(took) < enough):
        some = list(islice(pairs, size))
        began = clock()
        ranker.score(some)
        took.append(clock() - began)
    return tuple(took)
