"""How much better than its start a training is, how far that may be chance, and who is told."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secondlook.train.validation import Validated


@dataclass(frozen=True, slots=True)
class Gain:
    """The mean of the queries' own differences, and its standard error."""

    mean: float
    standard_error: float
    """Infinite for a single query."""
    queries: int
    changed: int
    """Queries whose own figure is another than at the start."""

    @classmethod
    def between(cls, start: Validated, later: Validated) -> Gain:
        """Of the same queries, each compared with itself."""
        own = [value - start.per_query[query] for query, value in later.per_query.items()]
        error = stdev(own) / sqrt(len(own)) if len(own) > 1 else float("inf")
        return cls(later.mean - start.mean, error, len(own), sum(map(bool, own)))

    @property
    def accepted(self) -> bool:
        """Whether the training is better than its start by the figures of more than one query.

        Two documents of nearly equal scores change places by rounding alone, and so differently
        in bf16 and in fp32; what a single query gains is no reason to keep a training.
        """
        return self.mean > 0 and (self.changed > 1 or self.queries == 1)

    @property
    def within_noise(self) -> bool:
        """Whether it is less than two standard errors: the 95% interval reaches to 0."""
        return abs(self.mean) < 2 * self.standard_error

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.standard_error:.4f} over {self.queries} queries"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What validation says of a training."""

    measure: str
    start: Validated
    best: Validated
    """Of the trained weights or of their average, whichever is better."""
    choices: Mapping[str, float]
    """What each of the two came to, where both were validated."""
    averaged: bool
    rejected: bool
    """Whether the start is kept."""

    @property
    def gain(self) -> Gain:
        """Of the best over the start."""
        return Gain.between(self.start, self.best)

    def metrics(self) -> dict[str, float]:
        """For the lineage."""
        name, gain = self.measure, self.gain
        metrics = {
            name: self.start.mean if self.rejected else self.best.mean,
            f"{name} at the start": self.start.mean,
        }
        if self.rejected:
            metrics[f"{name} of the rejected training"] = self.best.mean
        metrics |= {f"{name} {of}": value for of, value in self.choices.items()}
        of = " of the rejected training" if self.rejected else ""
        metrics |= {f"gain{of}": gain.mean, "validation queries": float(gain.queries)}
        if isfinite(gain.standard_error):  # JSON has no infinity
            metrics[f"standard error of the gain{of}"] = gain.standard_error
        return metrics

    def message(self) -> str:
        """For the user."""
        gain = self.gain
        figures = f"{self.measure} {self.best.mean:.4f} (start {self.start.mean:.4f}, {gain})"
        noise = (
            " The difference is within the noise (less than two standard errors); validate on "
            "more queries to be sure of it."
            if gain.within_noise
            else ""
        )
        if self.rejected:
            worse = "WORSE" if gain.mean < 0 else "NO BETTER"
            return (
                f"{worse} THAN THE START, which is kept: {figures} at best.{noise} Try a lower "
                "learning_rate, or more or harder negatives"
            )
        if gain.mean <= 0:
            return f"the ranker is no better than untrained: {figures}.{noise}"
        weights = "the average of the weights is" if self.averaged else "the trained weights are"
        return f"{weights} kept: {figures}.{noise}"
