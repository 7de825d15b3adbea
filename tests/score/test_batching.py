from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondlook.score.batching import batches
from secondlook.score.openvino_backend import OpenVinoBackend

lengths = st.lists(st.integers(1, 600), max_size=200)
budgets = st.integers(1, 5000)


@given(lengths, budgets)
def test_every_pair_is_in_one_batch(lengths, budget):
    together = [index for batch in batches(lengths, budget) for index in batch.tolist()]
    assert sorted(together) == list(range(len(lengths)))


@given(lengths, budgets)
def test_a_batch_keeps_to_the_budget_or_is_one_pair(lengths, budget):
    for batch in batches(lengths, budget):
        padded = len(batch) * max(lengths[index] for index in batch)
        assert padded <= budget or len(batch) == 1


@given(lengths, budgets)
def test_longer_pairs_come_first(lengths, budget):
    order = [lengths[index] for batch in batches(lengths, budget) for index in batch]
    assert order == sorted(lengths, reverse=True)


def test_pairs_of_like_length_meet():
    made = batches([10, 100, 12, 90, 11], token_budget=200)
    assert [batch.tolist() for batch in made] == [[1, 3], [2, 4, 0]]
    assert all(batch.dtype == np.intp for batch in made)


@pytest.mark.parametrize("pairs", [1, 7, 40])
def test_a_request_is_dealt_evenly_to_the_cores(pairs):
    for cores in (1, 2, 3):
        budget = graph_budget(cores, pairs * 100)
        assert budget <= 512
        assert ceil(pairs * 100 / budget) % cores == 0


def test_the_batches_of_much_work_do_not_depend_on_the_number_of_cores():
    assert {graph_budget(cores, 4096 * 60) for cores in (1, 2, 3, 64)} == {512}


def graph_budget(cores, tokens):
    backend = object.__new__(OpenVinoBackend)  # it needs no graph to make up its mind
    backend.workers, backend.token_budget, backend.deal_evenly = cores, 512, True
    return backend._budget(tokens)
