from collections import OrderedDict

import numpy as np
import pytest

from secondlook.scale.zipf import QueryLog


def test_the_most_frequent_queries_have_the_share_of_the_sums():
    ranks = np.arange(1, 100_001.0) ** -0.9
    log = QueryLog.zipf(100_000, 0.9)
    for kept in (10, 1000, 30_000):
        assert log.best(kept) == pytest.approx(ranks[:kept].sum() / ranks.sum(), rel=0.005)
    assert log.best(100_000) == pytest.approx(1)


def test_lru_is_what_a_real_lru_does():
    rng = np.random.default_rng(1)
    weight = np.arange(1, 20_001.0) ** -1.0
    asked = rng.choice(20_000, 120_000, p=weight / weight.sum()).tolist()
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for place, query in enumerate(asked):
        if query in cache:
            hits += place >= 20_000  # the cache is full by then
        cache[query] = None
        cache.move_to_end(query)
        if len(cache) > 2000:
            cache.popitem(last=False)
    assert QueryLog.zipf(20_000, 1.0).lru(2000) == pytest.approx(hits / 100_000, abs=0.01)


def test_answers_that_expire_are_what_a_real_cache_of_them_does():
    rng = np.random.default_rng(2)
    weight = np.arange(1, 5001.0) ** -1.0
    until: dict[int, int] = {}
    hits = 0
    for now, query in enumerate(rng.choice(5000, 100_000, p=weight / weight.sum()).tolist()):
        if until.get(query, -1) >= now:
            hits += 1
        else:
            until[query] = now + 3000
    assert QueryLog.zipf(5000, 1.0).fresh(3000) == pytest.approx(hits / 100_000, abs=0.015)


def test_a_cache_of_everything_always_answers_and_lru_is_never_better_than_the_best():
    log = QueryLog.zipf(10**10, 0.8)
    assert log.lru(10**11) == 1
    for kept in (10**4, 10**7):
        assert 0 < log.lru(kept) <= log.best(kept) < 1
