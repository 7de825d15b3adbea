import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.evaluate.cross_validation import (
    best_of,
    cross_validate,
    surely_better_than_first,
)


def tuned(values, choose, folds=5, seed=0):
    return cross_validate(np.array(values, float), choose, folds, np.random.default_rng(seed))


@pytest.mark.parametrize("choose", [best_of, surely_better_than_first])
def test_what_is_better_for_every_query_is_chosen_in_every_fold(choose):
    found = tuned([[0.1] * 20, [0.5] * 20, [0.3] * 20], choose)
    assert found.best == 1
    assert found.held_out == pytest.approx([0.5] * 20)


def test_a_gain_within_two_standard_errors_is_not_taken():
    swing = np.tile([0.4, -0.38], 20)  # better on average by .01, with an error of .06
    values = [np.full(40, 0.5), 0.5 + swing]
    assert tuned(values, surely_better_than_first).best == 0
    assert tuned(values, best_of).best == 1


def test_of_equals_the_first_is_chosen():
    assert tuned([[0.2] * 10, [0.2] * 10], best_of).best == 0


def test_a_query_is_never_judged_by_a_choice_that_saw_it():
    # Each way is perfect for one query and bad for all others: seen, that query would choose it.
    values = np.eye(8)
    found = tuned(values, best_of, folds=8)
    assert found.held_out == pytest.approx(np.zeros(8))


@settings(deadline=None)  # a busy machine is not a slow function
@given(st.integers(0, 50), st.integers(2, 10), st.integers(2, 30))
def test_the_same_seed_deals_the_same_folds(seed, folds, queries):
    values = np.random.default_rng(seed).random((4, queries))
    one, other = (tuned(values, surely_better_than_first, folds, seed) for _ in range(2))
    assert one.best == other.best
    assert one.held_out.tolist() == other.held_out.tolist()
    assert np.isin(one.held_out, values).all()
