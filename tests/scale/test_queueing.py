"""The simulation against the closed forms that queueing theory has."""

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.scale.queueing import Scoring, fleet, poisson, pool

REQUESTS = 100_000


def erlang_c(servers, offered):
    """The chance to wait in M/M/c."""
    last = offered**servers / factorial(servers) * servers / (servers - offered)
    return last / (sum(offered**k / factorial(k) for k in range(servers)) + last)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_server_with_exponential_work_is_mm1(load):
    rng = np.random.default_rng(1)
    arrivals = poisson(load, REQUESTS, rng)
    spent = pool(arrivals, rng.exponential(1.0, REQUESTS), 1) - arrivals
    assert spent.mean() == pytest.approx(1 / (1 - load), rel=0.06)
    p99 = np.log(100) / (1 - load)  # the time spent in M/M/1 is exponential
    assert np.percentile(spent, 99) == pytest.approx(p99, rel=0.1)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_server_with_fixed_work_is_md1(load):
    arrivals = poisson(load, REQUESTS, np.random.default_rng(2))
    waited = pool(arrivals, np.ones(REQUESTS), 1) - arrivals - 1
    assert waited.mean() == pytest.approx(load / (2 * (1 - load)), rel=0.06)


@pytest.mark.parametrize("servers", [2, 5])
def test_many_servers_are_mmc(servers):
    load, rng = 0.7, np.random.default_rng(3)
    arrivals = poisson(load * servers, REQUESTS, rng)
    work = rng.exponential(1.0, REQUESTS)
    waited = pool(arrivals, work, servers) - arrivals - work
    expected = erlang_c(servers, load * servers) / (servers * (1 - load))
    assert waited.mean() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_scoring_server_of_one_pair_chunks_is_md1(load):
    rng = np.random.default_rng(4)
    arrivals = poisson(load, REQUESTS // 2, rng)
    waited = fleet(arrivals, 1, Scoring(0.25, 0.75, chunk=1), 1, rng) - arrivals - 1
    assert waited.mean() == pytest.approx(load / (2 * (1 - load)), rel=0.06)


def test_jitter_makes_a_scoring_server_mg1():
    """Pollaczek and Khinchine: waiting grows with one plus the squared variation."""
    load, rng = 0.6, np.random.default_rng(5)
    arrivals = poisson(load, REQUESTS, rng)
    done = fleet(arrivals, 1, Scoring(0.0, 1.0, chunk=1, jitter=0.5), 1, rng)
    expected = 1 + load * (1 + 0.5**2) / (2 * (1 - load))
    assert (done - arrivals).mean() == pytest.approx(expected, rel=0.06)


def test_requests_alone_take_what_the_formula_says():
    scoring = Scoring(0.1, 0.01, chunk=40)
    arrivals = np.array([0.0, 100.0, 200.0])
    spent = fleet(arrivals, 100, scoring, 1, np.random.default_rng(0)) - arrivals
    assert spent == pytest.approx([scoring.alone(100)] * 3)
    assert scoring.alone(100) == pytest.approx(3 * 0.1 + 1.0)


def test_what_a_request_takes_beside_its_pairs_counts_once_for_each():
    scoring = Scoring(1.0, 0.1, chunk=32, request=0.5)
    done = fleet(np.zeros(3), 10, scoring, 1, np.random.default_rng(0))
    both = 2.5 + 1 + 20 * 0.1 + 2 * 0.5
    assert done == pytest.approx([scoring.alone(10), both, both])
    assert scoring.alone(10) == pytest.approx(2.5)
    assert scoring.capacity(16) == pytest.approx(1 / (0.5 + 1.6 + 0.5))


def test_small_requests_that_come_together_share_a_chunk():
    scoring = Scoring(1.0, 0.0, chunk=32)
    done = fleet(np.array([0.0, 0.1, 0.2, 0.3]), 8, scoring, 1, np.random.default_rng(0))
    assert done == pytest.approx([1.0, 2.0, 2.0, 2.0])


def test_large_requests_take_turns():
    scoring = Scoring(0.0, 1.0, chunk=16)
    done = fleet(np.array([0.0, 0.5]), 64, scoring, 1, np.random.default_rng(0))
    assert done == pytest.approx([96.0, 128.0])  # a b stands for 16 pairs: a a b a b a b b


def test_two_servers_bear_twice_the_load():
    scoring, rng = Scoring(0.01, 0.01, chunk=20), np.random.default_rng(6)
    one = poisson(0.7 * scoring.capacity(20), 20_000, rng)
    two = poisson(1.4 * scoring.capacity(20), 20_000, rng)
    alone = fleet(one, 20, scoring, 1, rng) - one
    together = fleet(two, 20, scoring, 2, rng) - two
    assert np.percentile(together, 99) < np.percentile(alone, 99)


@settings(max_examples=50, deadline=None)
@given(
    gaps=st.lists(st.floats(0, 3), min_size=1, max_size=30),
    pairs=st.integers(1, 50),
    chunk=st.integers(1, 64),
    servers=st.integers(1, 4),
)
def test_every_request_is_done_and_none_faster_than_alone(gaps, pairs, chunk, servers):
    scoring = Scoring(0.05, 0.02, chunk)
    arrivals = np.cumsum(gaps)
    spent = fleet(arrivals, pairs, scoring, servers, np.random.default_rng(0)) - arrivals
    assert (spent >= pairs * scoring.pair + scoring.fixed - 1e-9).all()
    assert np.isfinite(spent).all()


def test_a_machine_with_a_slow_minute_is_late_in_it_and_not_after():
    scoring = Scoring(fixed=0.01, pair=0.001, chunk=64)
    arrivals = np.arange(600) * 0.2  # each is answered before the next comes
    rng = np.random.default_rng(1)
    done = fleet(arrivals, 20, scoring, 1, rng, lambda now: 3.0 if 30 <= now < 60 else 1.0)
    slow = (arrivals >= 30) & (arrivals < 60)
    assert (done - arrivals)[slow] == pytest.approx(3 * 0.03)
    assert (done - arrivals)[~slow] == pytest.approx(0.03)
