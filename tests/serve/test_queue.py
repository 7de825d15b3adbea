"""Many requests, one ranker: merged, fair, bounded, on time."""

import asyncio
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook import Document, Query
from secondlook.serve.metrics import Metrics
from secondlook.serve.outcome import Outcome
from secondlook.serve.queue import QueueFull, ScoringFailed, ScoringQueue
from served import Watched


def pairs(count, query="what is the tide", word="sea"):
    return [(Query("", query), Document("", f"{word} {number}")) for number in range(count)]


@pytest.fixture
def queue_of():
    made = []

    def make(ranker, capacity=1000):
        made.append(ScoringQueue(ranker, "tiny", capacity, Metrics()))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


def soon(seconds=20.0):
    return time.monotonic() + seconds


async def until(condition):
    while not condition():
        await asyncio.sleep(0.002)


@settings(max_examples=25)
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_every_request_gets_its_own_scores(ranker, sizes):
    queue = ScoringQueue(ranker, "tiny", 10_000, Metrics())
    asked = [pairs(size, f"what is {number}") for number, size in enumerate(sizes)]

    async def ask_all():
        return await asyncio.gather(*(queue.score(some, soon()) for some in asked))

    for some, outcome in zip(asked, asyncio.run(ask_all()), strict=True):
        assert not outcome.partial
        assert outcome.scores == pytest.approx(ranker.score(some), abs=1e-4)
    assert queue.waiting == 0
    queue.close()


def test_small_requests_are_scored_together(ranker, queue_of):
    watched = Watched(ranker)
    queue = queue_of(watched)

    async def ask():
        watched.go.clear()
        first = asyncio.create_task(queue.score(pairs(1), soon()))
        await until(watched.begun.is_set)
        rest = [asyncio.create_task(queue.score(pairs(5), soon())) for _ in range(8)]
        await until(lambda: queue.waiting == 41)
        watched.go.set()
        await asyncio.gather(first, *rest)

    asyncio.run(ask())
    assert [len(chunk) for chunk in watched.chunks] == [1, 40]


def test_a_small_request_does_not_wait_for_a_large_one(ranker, queue_of, monkeypatch):
    monkeypatch.setattr("secondlook.serve.queue._FEWEST_TOKENS", 200)
    monkeypatch.setattr("secondlook.serve.queue._CHUNK_SECONDS", 0)
    watched = Watched(ranker, seconds_per_pair=0.001)
    queue = queue_of(watched)

    async def ask():
        large = asyncio.create_task(queue.score(pairs(500), soon()))
        await until(watched.begun.is_set)
        await queue.score(pairs(5, word="river"), soon())
        assert not large.done()
        assert queue.waiting > 300
        return await large

    assert not asyncio.run(ask()).partial


def test_while_a_chunk_is_scored_the_next_is_begun_if_it_is_full(ranker, queue_of, monkeypatch):
    monkeypatch.setattr("secondlook.serve.queue._FEWEST_TOKENS", 200)
    monkeypatch.setattr("secondlook.serve.queue._CHUNK_SECONDS", 0)
    watched = Watched(ranker)
    queue = queue_of(watched)

    async def ask():
        watched.go.clear()
        large = asyncio.create_task(queue.score(pairs(500), soon()))
        await until(lambda: len(watched.chunks) == 2)
        assert queue.waiting == 500
        watched.go.set()
        return await large

    outcome = asyncio.run(ask())
    assert outcome.scores == pytest.approx(ranker.score(pairs(500)), abs=1e-4)


def test_at_the_deadline_what_has_no_score_stands_last_in_its_order(ranker, queue_of, monkeypatch):
    monkeypatch.setattr("secondlook.serve.queue._FEWEST_TOKENS", 200)
    monkeypatch.setattr("secondlook.serve.queue._CHUNK_SECONDS", 0)
    watched = Watched(ranker, seconds_per_pair=0.01)
    queue = queue_of(watched)
    some = pairs(400)
    began = time.monotonic()
    outcome = asyncio.run(queue.score(some, soon(0.5)))
    assert time.monotonic() - began < 1.5
    scored = int(outcome.scored.sum())
    assert outcome.partial
    assert 0 < scored < 400
    order = outcome.order()
    assert order[scored:] == sorted(order[scored:])
    assert sorted(order) == list(range(400))
    head = order[:scored]
    assert outcome.scores[head] == pytest.approx(sorted(ranker.score(some)[head])[::-1], abs=1e-4)
    assert queue.waiting == 0


def test_scores_behind_a_gap_are_dropped(ranker, queue_of, monkeypatch):
    """Two chunks are scored at once, and the second is ready first."""
    monkeypatch.setattr("secondlook.serve.queue._FEWEST_TOKENS", 200)
    monkeypatch.setattr("secondlook.serve.queue._CHUNK_SECONDS", 0)

    class FirstHeld(Watched):
        def score_encoded(self, encoded):
            if self._texts[id(encoded[0])] == "sea 0":
                return super().score_encoded(encoded)
            return self.ranker.score_encoded(encoded)

    held = FirstHeld(ranker)
    held.go.clear()
    queue = queue_of(held)

    async def ask():
        outcome = await queue.score(pairs(300), soon(0.6))
        held.go.set()
        return outcome, await queue.score(pairs(300), soon())

    outcome, whole = asyncio.run(ask())
    assert outcome.partial
    assert not outcome.scored.any()
    assert outcome.order() == list(range(300))
    assert (outcome.tokens.sum(), sum(outcome.windows)) == (0, 0)
    assert not whole.partial


@given(
    scored=st.lists(st.booleans(), min_size=1, max_size=30),
    scores=st.lists(st.floats(-5, 5, width=32), min_size=30, max_size=30),
)
def test_what_has_a_score_is_the_beginning(scored, scores):
    size = len(scored)
    outcome = Outcome(
        np.array(scored),
        np.array(scores[:size], np.float32),
        np.ones(size, np.intp),
        np.zeros(size, np.intp),
        [(0, 1)] * size,
        [1] * size,
        np.ones(size, np.intp),
        failure="the service is down",
    ).first_scored()
    assert outcome.failure == "the service is down"
    count = int(outcome.scored.sum())
    assert count == next((at for at, one in enumerate(scored) if not one), size)
    assert outcome.scored[:count].all()
    order = outcome.order()
    assert sorted(order[:count]) == list(range(count))
    assert order[count:] == list(range(count, size))
    assert sum(outcome.windows) == outcome.tokens.sum() == count


def test_a_deadline_in_the_past_is_an_answer_too(ranker, queue_of):
    outcome = asyncio.run(queue_of(ranker).score(pairs(3), time.monotonic() - 1))
    assert outcome.partial
    assert outcome.order() == [0, 1, 2]


def test_beyond_its_capacity_it_refuses_and_says_when_to_come_back(ranker, queue_of):
    watched = Watched(ranker)
    queue = queue_of(watched, capacity=10)

    async def ask():
        watched.go.clear()
        large = asyncio.create_task(queue.score(pairs(50), soon()))  # found it empty
        await until(watched.begun.is_set)
        with pytest.raises(QueueFull, match="try again in") as refused:
            await queue.score(pairs(1), soon())
        watched.go.set()
        await large
        assert not (await queue.score(pairs(1), soon())).partial
        return refused.value.seconds

    assert asyncio.run(ask()) >= 1


def test_cancelled_pairs_are_not_scored(ranker, queue_of):
    watched = Watched(ranker)
    queue = queue_of(watched)

    async def ask():
        watched.go.clear()
        first = asyncio.create_task(queue.score(pairs(1), soon()))
        await until(watched.begun.is_set)
        gone = asyncio.create_task(queue.score(pairs(7, word="fish"), soon()))
        await until(lambda: queue.waiting == 8)
        gone.cancel()
        await until(lambda: queue.waiting == 1)
        watched.go.set()
        await first
        await queue.score(pairs(1, word="tide"), soon())

    asyncio.run(ask())
    assert not any("fish" in text for chunk in watched.chunks for text in chunk)


def test_a_request_that_breaks_the_ranker_fails_alone(ranker, queue_of):
    watched = Watched(ranker, breaks_on="bogus")
    queue = queue_of(watched)

    async def ask():
        watched.go.clear()
        first = asyncio.create_task(queue.score(pairs(1), soon()))
        await until(watched.begun.is_set)
        good = asyncio.create_task(queue.score(pairs(3), soon()))
        bad = asyncio.create_task(queue.score(pairs(3, word="bogus"), soon()))
        await until(lambda: queue.waiting == 7)
        watched.go.set()
        return await asyncio.gather(first, good, bad, return_exceptions=True)

    first, good, bad = asyncio.run(ask())
    assert not first.partial
    assert good.scores == pytest.approx(ranker.score(pairs(3)), abs=1e-4)
    assert isinstance(bad, ScoringFailed)
    assert queue.alive
    assert queue.waiting == 0


def test_a_score_that_is_no_number_is_a_failure(ranker, queue_of):
    class Broken(Watched):
        def score_encoded(self, encoded):
            made = super().score_encoded(encoded)
            made.scores[:] = np.nan
            return made

    with pytest.raises(ScoringFailed, match="no number"):
        asyncio.run(queue_of(Broken(ranker)).score(pairs(2), soon()))


def test_drained_means_that_all_was_scored(ranker, queue_of):
    queue = queue_of(Watched(ranker, seconds_per_pair=0.005))

    async def ask():
        waiting = [asyncio.create_task(queue.score(pairs(10), soon())) for _ in range(5)]
        await asyncio.sleep(0)
        await queue.drained()
        return await asyncio.gather(*waiting)

    assert not any(outcome.partial for outcome in asyncio.run(ask()))
    assert not queue.alive


def test_seconds_of_scoring_are_those_in_which_something_was_scored(ranker, queue_of):
    queue = queue_of(Watched(ranker, seconds_per_pair=0.002))

    def counted():
        return queue.metrics.scoring_seconds.labels("tiny")._value.get()

    async def ask(requests):
        began = time.monotonic()
        await asyncio.gather(*(queue.score(pairs(200), soon()) for _ in range(requests)))
        return time.monotonic() - began

    alone = asyncio.run(ask(1))
    assert 0 < counted() <= alone
    before = counted()
    time.sleep(0.3)  # nothing is scored meanwhile
    together = asyncio.run(ask(4))
    assert 0.5 * together < counted() - before <= together + 0.01  # two chunks at once count once
