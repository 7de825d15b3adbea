import numpy as np
import pytest
from scipy.stats import ttest_rel

from secondlook.evaluate.seeds import over_seeds


def test_seeds_that_change_nothing_leave_the_paired_t_test():
    rng = np.random.default_rng(1)
    base, new = rng.random(40), rng.random(40)
    [found] = over_seeds([np.tile(new - base, (3, 1))])
    expected = ttest_rel(new, base)
    interval = expected.confidence_interval()
    assert (found.low, found.high, found.p) == pytest.approx(
        (interval.low, interval.high, expected.pvalue), rel=1e-6
    )


def test_queries_that_are_alike_leave_the_t_test_over_seeds():
    [found] = over_seeds([np.repeat([[0.01], [0.03], [0.05]], 20, axis=1)])
    assert found.low == pytest.approx(0.03 - 4.302653 * 0.02 / np.sqrt(3))
    assert found.p == pytest.approx(0.1217, abs=1e-4)  # t = 2.598, two degrees of freedom


def test_the_variance_between_seeds_is_shared_by_differences_over_as_many_queries():
    noisy = np.repeat([[0.0], [0.02]], 20, axis=1)
    once, other = np.full((1, 20), 0.04), np.full((1, 30), 0.04)
    shared, _, alone = over_seeds([once, noisy, other])
    assert shared.high - 0.04 == pytest.approx(12.7062 * 0.02 / np.sqrt(2), rel=1e-4)
    assert alone is None, "one seed, and nothing to compare it with"


def test_no_difference_at_all_is_no_finding():
    [found] = over_seeds([np.zeros((2, 20))])
    assert (found.low, found.high, found.p) == (0, 0, 1)


def test_the_interval_covers_the_truth_in_about_95_of_100_studies():
    """Queries, seeds and their interaction all vary; four parts are measured together."""
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(200):
        differences = [
            0.01
            + rng.normal(0, 0.06, 200)
            + rng.normal(0, 0.006, (3, 1))
            + rng.normal(0, 0.08, (3, 200))
            for _ in range(4)
        ]
        covered += [found.low <= 0.01 <= found.high for found in over_seeds(differences) if found]
    assert 0.93 < np.mean(covered) < 0.98
