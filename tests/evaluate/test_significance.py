"""Against scipy, and against numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from secondlook.evaluate.significance import (
    RESAMPLES,
    bootstrap_interval,
    detectable,
    holm,
    power,
    queries_needed,
    randomisation_test,
    t_test,
)

SKEWED = np.random.default_rng(7).exponential(0.1, 40) - 0.05


def rng():
    return np.random.default_rng(0)


def test_the_t_test_is_scipys():
    noise = np.random.default_rng(1).normal(size=40)
    assert t_test(SKEWED) == pytest.approx(stats.ttest_rel(noise + SKEWED, noise).pvalue, abs=1e-9)


def test_the_interval_is_scipys_bca_bootstrap():
    theirs = stats.bootstrap(
        (SKEWED,), np.mean, n_resamples=RESAMPLES, method="BCa", rng=rng(), vectorized=True
    ).confidence_interval
    assert bootstrap_interval(SKEWED, rng()) == pytest.approx(tuple(theirs), abs=1e-6)


def test_the_randomisation_test_is_scipys_where_it_is_exact():
    few = SKEWED[:12]
    theirs = stats.permutation_test(
        (few, np.zeros(12)),
        lambda new, old: np.mean(new - old),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    assert randomisation_test(few, rng()) == pytest.approx(theirs.pvalue, abs=1e-6)


def test_the_randomisation_test_comes_close_to_scipys_where_it_samples():
    theirs = stats.permutation_test(
        (SKEWED, np.zeros(40)),
        lambda new, old, axis: np.mean(new - old, axis=axis),
        permutation_type="samples",
        n_resamples=50_000,
        rng=rng(),
    )
    p = theirs.pvalue
    assert randomisation_test(SKEWED, rng()) == pytest.approx(p, abs=4 * np.sqrt(p / RESAMPLES))


def test_three_queries_that_all_gain_could_be_chance_once_in_four():
    # 8 sign patterns; only +++ and --- are as extreme
    assert randomisation_test(np.array([0.1, 0.2, 0.3]), rng()) == 0.25


def test_a_t_test_worked_by_hand():
    # mean 2, standard deviation 1, n 3: t = 2√3 with 2 degrees of freedom; p = 1 - t/√(t²+2)
    t = 2 * np.sqrt(3)
    assert t_test(np.array([1.0, 2.0, 3.0])) == pytest.approx(1 - t / np.sqrt(t**2 + 2))


def test_holm_worked_by_hand():
    # sorted .01 .02 .03 .04 → ×4 ×3 ×2 ×1 = .04 .06 .06 .04, never falling
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_never_lowers_a_p(p_values):
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0])
def test_power_is_that_of_the_noncentral_t(effect):
    beyond = stats.t.ppf(0.975, 29)
    shift = effect * np.sqrt(30)
    theirs = stats.nct.sf(beyond, 29, shift) + stats.nct.cdf(-beyond, 29, shift)
    assert power(effect, 30, 0.05) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.05, 0.025, 0.001])
def test_power_grows_with_the_effect_to_certainty(alpha):
    found = np.array([power(effect, 11, alpha) for effect in np.geomspace(0.01, 10, 200)])
    assert (np.diff(found) >= -1e-9).all()
    assert found[-1] == pytest.approx(1)


@pytest.mark.parametrize("effect", [2.822, 2.931, 3.0, 9.0])
def test_a_large_effect_needs_as_many_queries_as_a_randomisation_test_can_tell_with(effect):
    deltas = np.array([1.0, -1.0] * 50) / np.std([1.0, -1.0] * 50, ddof=1) + effect
    assert queries_needed(deltas, 0.025) == 7  # 2^(1-7) is the first below .025


def test_half_a_standard_deviation_needs_34_queries():
    # the textbook's number for a paired t-test at .05 with a power of .8
    deltas = np.array([-0.5, 1.5] * 500) / np.std([-0.5, 1.5] * 500, ddof=1)
    assert deltas.mean() == pytest.approx(0.5, abs=1e-3)
    assert queries_needed(deltas, 0.05) == 34


def test_what_so_many_queries_can_show_is_what_needs_so_many():
    noise = SKEWED - SKEWED.mean()
    smallest = detectable(noise, 0.05)
    assert queries_needed(noise + smallest, 0.05) == pytest.approx(len(noise), abs=1)


@pytest.mark.parametrize("deltas", [np.zeros(5), np.zeros(30), np.array([0.3])])
def test_no_difference_or_one_query_tells_nothing(deltas):
    assert t_test(deltas) == 1.0
    assert randomisation_test(deltas, rng()) == 1.0
    assert bootstrap_interval(deltas, rng()) == (deltas[0], deltas[0])
    assert queries_needed(deltas, 0.05) is None


def test_a_difference_that_is_the_same_everywhere_is_certain():
    deltas = np.full(20, 0.1)
    assert t_test(deltas) == 0.0
    assert randomisation_test(deltas, rng()) == pytest.approx(1 / (1 + RESAMPLES))


@settings(max_examples=25)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_swapping_the_systems_changes_the_sign_and_no_p(values):
    deltas = np.array(values)
    assert t_test(deltas) == t_test(-deltas)
    assert randomisation_test(deltas, rng()) == randomisation_test(-deltas, rng())
    low, high = bootstrap_interval(deltas, rng())
    assert low <= deltas.mean() + 1e-9
    assert deltas.mean() - 1e-9 <= high
