"""From a score to the probability that the document is relevant, as the checkpoint says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from secondlook.evaluate.calibration import Isotonic, Platt
from secondlook.model.settings import PlattCalibration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from secondlook.model.settings import IsotonicCalibration


def calibrate(
    scores: NDArray[np.float32], calibration: PlattCalibration | IsotonicCalibration
) -> NDArray[np.float32]:
    """The probabilities of these scores."""
    probability: Platt | Isotonic
    if isinstance(calibration, PlattCalibration):
        probability = Platt(calibration.slope, calibration.intercept)
    else:
        probability = Isotonic(np.array(calibration.scores), np.array(calibration.probabilities))
    return probability(scores.astype(np.float64)).astype(np.float32)
