"""From a score to the probability that the document is relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from secondlook.model.settings import PlattCalibration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from secondlook.model.settings import IsotonicCalibration


def sigmoid(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + e^-s), without overflow."""
    return (0.5 * (1 + np.tanh(0.5 * scores.astype(np.float64)))).astype(np.float32)


def calibrate(
    scores: NDArray[np.float32], calibration: PlattCalibration | IsotonicCalibration
) -> NDArray[np.float32]:
    """The probabilities of these scores."""
    if isinstance(calibration, PlattCalibration):
        return sigmoid(calibration.slope * scores + calibration.intercept)
    probabilities = np.interp(scores, calibration.scores, calibration.probabilities)
    return probabilities.astype(np.float32)
