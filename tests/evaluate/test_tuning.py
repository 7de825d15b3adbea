import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.evaluate.cross_validation import cross_validate


def tuned(values, simple, folds=5, seed=0):
    return cross_validate(
        np.array(values, float), np.array(simple), folds, np.random.default_rng(seed)
    )


def test_what_is_better_for_every_query_is_chosen_in_every_fold():
    found = tuned([[0.1] * 20, [0.5] * 20, [0.3] * 20], [True, False, False])
    assert found.best == 1
    assert found.held_out == pytest.approx([0.5] * 20)


def test_a_gain_within_two_standard_errors_is_not_taken():
    swing = np.tile([0.4, -0.38], 20)  # better on average by .01, with an error of .06
    found = tuned([np.full(40, 0.5), 0.5 + swing], [True, False])
    assert found.best == 0
    assert tuned([np.full(40, 0.5), 0.5 + swing], [True, True]).best == 1


def test_of_equals_the_first_is_chosen():
    assert tuned([[0.2] * 10, [0.2] * 10], [True, True]).best == 0


def test_a_query_is_never_judged_by_a_choice_that_saw_it():
    # Each way is perfect for one query and bad for all others: seen, that query would choose it.
    values = np.eye(8)
    found = tuned(values, [True] * 8, folds=8)
    assert found.held_out == pytest.approx(np.zeros(8))


@settings(deadline=None)  # a busy machine is not a slow function
@given(st.integers(0, 50), st.integers(2, 10), st.integers(2, 30))
def test_the_same_seed_deals_the_same_folds(seed, folds, queries):
    values = np.random.default_rng(seed).random((4, queries))
    simple = [True, True, False, False]
    one, other = (tuned(values, simple, folds, seed) for _ in range(2))
    assert one.best == other.best
    assert one.held_out.tolist() == other.held_out.tolist()
    assert np.isin(one.held_out, values).all()
