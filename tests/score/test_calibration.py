import numpy as np
import pytest

from secondlook.model.settings import IsotonicCalibration, PlattCalibration
from secondlook.score.calibration import calibrate


def test_platt_is_a_line_through_a_sigmoid():
    scores = np.array([-1.0, 0.5, 2.0], np.float32)
    shown = calibrate(scores, PlattCalibration(slope=2.0, intercept=-1.0))
    assert shown == pytest.approx(1 / (1 + np.exp([3.0, 0.0, -3.0])), abs=1e-6)
    assert shown.dtype == np.float32


def test_isotonic_is_a_broken_line_and_level_beyond_its_ends():
    calibration = IsotonicCalibration(scores=(0.0, 1.0, 2.0), probabilities=(0.1, 0.5, 0.9))
    scores = np.array([-9.0, 0.0, 0.5, 1.75, 9.0], np.float32)
    assert calibrate(scores, calibration) == pytest.approx([0.1, 0.1, 0.3, 0.8, 0.9])


def test_an_isotonic_calibration_of_unlike_sides_is_refused():
    with pytest.raises(ValueError, match="one probability for each"):
        IsotonicCalibration(scores=(0.0, 1.0), probabilities=(0.5,))
