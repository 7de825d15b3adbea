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
    judged_pairs,
)
from secondlook.score.scale import fit_isotonic, fit_platt, fit_spread, sigmoid
from secondlook.types import Hit, Ranking


@pytest.fixture
def pairs():
    """Scores whose true probability is sigmoid(2·score - 3), 20 to a query."""
    rng = np.random.default_rng(4)
    scores = rng.normal(1.5, 2.0, 20_000)
    relevant = rng.random(20_000) < expit(2 * scores - 3)
    ids = tuple(map(str, range(1000)))
    return Judged(scores, relevant, np.repeat(np.arange(1000), 20), ids, positives_only=False)


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


def test_the_scale_of_related_and_unrelated_texts_spreads_scores():
    """However far apart the two kinds are, and however many there are of each."""
    rng = np.random.default_rng(0)
    for gap, few in ((3.0, 64), (30.0, 64), (3000.0, 5)):
        scores = np.concatenate([rng.normal(gap, 1, few), rng.normal(0, 1, 200)])
        fitted = fit_spread(scores, np.arange(len(scores)) < few)
        shown = fitted(scores).astype(np.float32)
        assert np.median(shown[:few]) > 0.9
        assert np.median(shown[few:]) < 0.1
        logits = np.abs(fitted.slope * scores + fitted.intercept)
        assert np.percentile(logits, 90) < 8
        assert logits.max() < 12  # far from 17, where a float32 sigmoid is 1
        assert len(np.unique(shown)) > 0.99 * len(scores)
        assert fitted(np.array([gap / 2]))[0] == pytest.approx(0.25, abs=0.1)  # one in four


def test_a_scale_never_falls():
    scores = np.arange(100.0)
    fitted = fit_spread(scores, scores < 50)  # related texts score lower
    assert fitted.slope > 0
    assert np.all(np.abs(fitted(scores) - 0.5) < 0.1)


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
    assert pairs.query_ids == ("q",)
    assert not pairs.positives_only


def test_where_only_relevant_documents_are_named_all_other_hits_are_not_relevant():
    qrels = {"q": {str(n): 1 for n in range(12)}}
    ranking = Ranking.of("q", [Hit(str(n), float(n)) for n in range(50)])
    unjudged = Ranking.of("no judgments", [Hit(str(n), float(n)) for n in range(50)])
    pairs = judged_pairs(qrels, [ranking, unjudged], relevant_from=1)
    assert pairs.positives_only
    assert len(pairs.scores) == 50
    assert pairs.relevant.sum() == 12


def test_too_few_judgments_are_refused():
    ranking = Ranking.of("q", [Hit(str(n), float(n)) for n in range(12)])
    with pytest.raises(NothingToCalibrate, match="at least 10"):
        judged_pairs({"q": {str(n): 1 for n in range(12)}}, [ranking], relevant_from=1)


@given(st.floats(allow_nan=False))
def test_the_sigmoid_is_a_probability_however_large_the_score(score):
    assert 0 <= sigmoid(np.array([score]))[0] <= 1
