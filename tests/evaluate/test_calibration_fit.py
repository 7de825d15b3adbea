import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from secondlook.evaluate.calibration import (
    Judged,
    NothingToCalibrate,
    cross_validated,
    expected_calibration_error,
    fit_isotonic,
    fit_platt,
    judged_pairs,
    sigmoid,
)
from secondlook.types import Hit, Ranking


@pytest.fixture
def pairs():
    """Scores whose true probability is sigmoid(2·score - 3), 20 to a query."""
    rng = np.random.default_rng(4)
    scores = rng.normal(1.5, 2.0, 20_000)
    relevant = rng.random(20_000) < expit(2 * scores - 3)
    return Judged(scores, relevant, np.repeat(np.arange(1000), 20))


def test_platt_finds_the_true_slope_and_intercept(pairs):
    fitted = fit_platt(pairs.scores, pairs.relevant)
    assert fitted.slope == pytest.approx(2, rel=0.05)
    assert fitted.intercept == pytest.approx(-3, rel=0.05)


def test_platt_of_separable_scores_is_finite():
    fitted = fit_platt(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True]))
    assert np.isfinite(fitted.slope)
    assert fitted.slope > 0
    # Platt's targets for two of each kind: 3/4 and 1/4
    assert fitted(np.array([4.0]))[0] == pytest.approx(0.85, abs=0.1)


def test_platt_of_huge_scores_does_not_overflow():
    scores = np.array([-1e6, -5e5, 1e5, 1e6] * 10)
    fitted = fit_platt(scores, scores > 0)
    assert np.all(np.isfinite(fitted(scores)))


def test_isotonic_worked_by_hand():
    fitted = fit_isotonic(
        np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([False, True, False, True, True])
    )
    # 2 and 3 are pooled to one half
    assert fitted(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 9.0])).tolist() == [0, 0, 0.5, 0.5, 1, 1]
    assert fitted.scores.tolist() == [1, 2, 3, 4, 5]


def test_isotonic_never_falls_and_forgets_what_lies_inside_a_step(pairs):
    fitted = fit_isotonic(pairs.scores, pairs.relevant)
    assert np.all(np.diff(fitted.probabilities) >= 0)
    assert np.all(np.diff(fitted.scores) > 0)
    assert len(fitted.scores) < 1000


def test_the_error_worked_by_hand():
    probabilities = np.array([0.9, 0.9, 0.1, 0.1])
    assert expected_calibration_error(
        probabilities, np.array([True, True, False, False])
    ) == pytest.approx(0.1)
    assert expected_calibration_error(
        probabilities, np.array([True, False, False, True])
    ) == pytest.approx(0.4)
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0


@pytest.mark.parametrize("fit", [fit_platt, fit_isotonic])
def test_calibration_mends_the_error_on_queries_it_has_not_seen(pairs, fit):
    before = expected_calibration_error(expit(pairs.scores), pairs.relevant)
    after = expected_calibration_error(cross_validated(pairs, fit), pairs.relevant)
    assert before > 0.1
    assert after < 0.02


def test_only_judged_hits_count():
    qrels = {"q": {str(n): n % 3 for n in range(60)}}
    ranking = Ranking.of("q", [Hit(str(n), float(n)) for n in range(80)])
    other = Ranking.of("unjudged", [Hit("1", 1.0)])
    pairs = judged_pairs(qrels, [ranking, other], relevant_from=2)
    assert len(pairs.scores) == 60
    assert pairs.relevant.sum() == 20


def test_too_few_judgments_are_refused():
    ranking = Ranking.of("q", [Hit(str(n), float(n)) for n in range(12)])
    with pytest.raises(NothingToCalibrate, match="at least 10"):
        judged_pairs({"q": {str(n): 1 for n in range(12)}}, [ranking], relevant_from=1)


@given(st.floats(allow_nan=False))
def test_the_sigmoid_is_a_probability_however_large_the_score(score):
    assert 0 <= sigmoid(np.array([score]))[0] <= 1
