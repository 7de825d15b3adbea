"""What answers say of a ranker, whether it runs here or elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from secondlook.model.settings import JUDGED, ScoreSource
from secondlook.score.remote_ranker import RemoteRanker

if TYPE_CHECKING:
    from secondlook.score.open_ranker import AnyRanker

ServedScoreSource = ScoreSource | Literal["remote service"]
"""What relevance scores were fitted on, or that somebody else gives them."""


def score_source(ranker: AnyRanker) -> ServedScoreSource:
    """Where a ranker's relevance scores come from."""
    return "remote service" if isinstance(ranker, RemoteRanker) else ranker.scale.source


def is_uncalibrated(ranker: AnyRanker) -> bool:
    """Whether its relevance scores are known not to be probabilities."""
    return not isinstance(ranker, RemoteRanker) and ranker.scale.source not in JUDGED


def max_length(ranker: AnyRanker) -> int | None:
    """How many tokens of a pair it reads; None where nobody here knows."""
    return None if isinstance(ranker, RemoteRanker) else ranker.settings.encode.max_length
