"""From raw scores to relevance scores: applied as the checkpoint says, and fitted to judgments."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

import numpy as np

from secondlook.evaluate.calibration import (
    NothingToCalibrate,
    Reliability,
    cross_validated,
    expected_calibration_error,
    judged_pairs,
)
from secondlook.model.settings import FittedOn, IsotonicCalibration, PlattCalibration
from secondlook.score.raw import RAW_TAG, pooled, require_raw_scores
from secondlook.score.scale import Isotonic, Platt, fit_isotonic, fit_platt, sigmoid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from secondlook.evaluate.calibration import Judged
    from secondlook.model.settings import RankerSettings, ScoreSource
    from secondlook.types import Qrels, Ranking

    Floats = NDArray[np.float64]

Calibration = PlattCalibration | IsotonicCalibration

_MEANING: dict[ScoreSource, str] = {
    "judgments": "the probability that the document is relevant, fitted to judgments",
    "positives only": "the probability that the document is relevant, fitted to judgments that "
    "name only relevant documents; all other hits counted as not relevant",
    "corpus": "not calibrated on judgments: the scale tells related from unrelated texts of the "
    "user's own corpus (.5 lies between the two)",
    "training data": "not calibrated on judgments: the scale tells queries with their own "
    "documents from queries with documents of other queries (.5 lies between the two)",
    "reference pairs": "not calibrated on judgments: the scale tells related from unrelated texts "
    "of built-in reference pairs (.5 lies between the two)",
}


def score_meaning(calibration: Calibration) -> str:
    """What a relevance score by this calibration means, in one plain sentence."""
    return f"Scores from 0 to 1: {_MEANING[calibration.source]}."


def calibrate(scores: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float32]:
    """The relevance scores of these raw scores: from 0 to 1, in the same order."""
    return _map_of(calibration)(scores.astype(np.float64)).astype(np.float32)


def _map_of(calibration: Calibration) -> Platt | Isotonic:
    if isinstance(calibration, PlattCalibration):
        return Platt(calibration.slope, calibration.intercept)
    return Isotonic(np.array(calibration.scores), np.array(calibration.probabilities))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibration, and how far its probabilities are off on queries it has not seen."""

    calibration: Calibration
    error_before: float
    """Expected calibration error by the scale that the ranker had stored, or a sigmoid."""
    error_after: float
    """By 5 folds over the queries."""

    @property
    def fitted_on(self) -> FittedOn:
        """The pairs."""
        assert self.calibration.fitted_on is not None
        return self.calibration.fitted_on


def fit_to_judgments(
    settings: RankerSettings,
    rankings: Sequence[Ranking],
    qrels: Qrels,
    *,
    kind: Literal["platt", "isotonic"] = "platt",
    relevant_from: int = 1,
) -> Fitted:
    """Fit probabilities to a run of the ranker's raw scores; see `raw_scores_of`.

    Raises NothingToCalibrate where pairs are too few, or relevant documents do not score higher
    than others.
    """
    pairs = judged_pairs(qrels, rankings, relevant_from)
    fitted_on = FittedOn(
        source="positives only" if pairs.positives_only else "judgments",
        pairs=len(pairs.scores),
        relevant=int(pairs.relevant.sum()),
        assumed="hits without a judgment are not relevant" if pairs.positives_only else "",
        data=_fingerprint(pairs),
        queries=" ".join(sorted(map(query_hash, pairs.query_ids))),
    )
    calibration: Calibration
    if kind == "platt":
        platt = fit_platt(pairs.scores, pairs.relevant)
        _refuse_falling(rising=platt.slope > 0)
        held_out = cross_validated(pairs, fit_platt)
        calibration = PlattCalibration(
            slope=platt.slope, intercept=platt.intercept, fitted_on=fitted_on
        )
    else:
        steps = fit_isotonic(pairs.scores, pairs.relevant)
        _refuse_falling(rising=bool(steps.probabilities[0] < steps.probabilities[-1]))
        held_out = cross_validated(pairs, fit_isotonic)
        calibration = IsotonicCalibration(
            scores=tuple(steps.scores.tolist()),
            probabilities=tuple(steps.probabilities.tolist()),
            fitted_on=fitted_on,
        )
    had = settings.calibration
    before = sigmoid(pairs.scores) if had is None else _map_of(had)(pairs.scores)
    return Fitted(
        calibration,
        expected_calibration_error(before, pairs.relevant),
        expected_calibration_error(held_out, pairs.relevant),
    )


def _refuse_falling(*, rising: bool) -> None:
    if not rising:
        raise NothingToCalibrate(
            "in this run relevant documents do not score higher than others, so nothing was "
            "stored. Probably the run is of another ranker or of other queries, its scores are "
            "distances (lower is better), or the judgments are of another collection"
        )


def raw_scores_of(
    settings: RankerSettings, rankings: Iterable[Ranking], tag: str | None
) -> list[Ranking]:
    """The ranker's raw score of each document of a run, windows pooled as the ranker pools them.

    `tag` is the run's last column; see `require_raw_scores`, which refuses other scores.
    """
    require_raw_scores(settings, tag, "a calibration is of")
    windows = settings.encode.windows
    if windows is None or tag != RAW_TAG:
        return list(rankings)
    return [pooled(ranking, windows) for ranking in rankings]


def reliability(
    settings: RankerSettings | None,
    rankings: Sequence[Ranking],
    qrels: Qrels,
    relevant_from: int = 1,
) -> Reliability:
    """The calibration error over a run of raw scores; raises NothingToCalibrate.

    By the ranker's own calibration, without the queries that it was fitted on; where it has none
    from judgments, what calibrating would give new queries.
    """
    if settings is None or settings.calibration is None or not settings.calibrated:
        pairs = judged_pairs(qrels, rankings, relevant_from)
        probabilities = cross_validated(pairs, fit_platt)
        how = "as `secondlook calibrate` would make it (cross-validated)"
    else:
        new, left_out = unseen(rankings, settings.calibration)
        if not new:
            raise NothingToCalibrate("the ranker was calibrated on these very queries")
        pairs = judged_pairs(qrels, new, relevant_from)
        probabilities = _map_of(settings.calibration)(pairs.scores)
        how = "as the ranker has it"
        if settings.calibration.fitted_on is None:
            how += " (which queries it was fitted on is not recorded)"
        elif left_out:
            how += f" (without {left_out:,} queries that it was fitted on)"
    if pairs.positives_only:
        how += ", hits without a judgment counted as not relevant"
    error = expected_calibration_error(probabilities, pairs.relevant)
    return Reliability(probabilities, pairs.relevant, error, how)


def unseen(rankings: Sequence[Ranking], calibration: Calibration) -> tuple[list[Ranking], int]:
    """The rankings of queries that the calibration was not fitted on, and how many it was."""
    fitted_on = calibration.fitted_on
    seen = set() if fitted_on is None else set(fitted_on.queries.split())
    new = [ranking for ranking in rankings if query_hash(ranking.query_id) not in seen]
    return new, len(rankings) - len(new)


def query_hash(query_id: str) -> str:
    """Short, and the same for the same id; two of ten thousand ids are alike once in a hundred."""
    return sha256(query_id.encode()).hexdigest()[:8]


def _fingerprint(pairs: Judged) -> str:
    digest = sha256(" ".join(pairs.query_ids).encode())
    for column in (pairs.scores, pairs.relevant, pairs.queries):
        digest.update(column.tobytes())
    return f"sha256:{digest.hexdigest()}"
