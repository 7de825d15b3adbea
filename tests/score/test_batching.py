import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secondlook.score.batching import batches

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
