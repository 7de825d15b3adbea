"""A table of what parts are worth: means over seeds, and tests against the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from secondlook.evaluate.significance import holm, randomisation_test

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ablated:
    """One recipe, trained with some seeds."""

    name: str
    mean: float
    deviation: float | None
    """Of the seeds' means; None of one seed."""
    seeds: int
    delta: float
    """From the whole."""
    adjusted: float | None
    """The p of the difference per query, each query's mean over seeds, corrected by Holm over all
    recipes; None of the whole itself."""


def ablation(
    figures: Mapping[str, Sequence[Values]], rng: np.random.Generator
) -> tuple[Ablated, ...]:
    """The table; `figures` are each recipe's values per query, one mapping a seed, whole first."""
    means = {name: _by_query(seeds) for name, seeds in figures.items()}
    (whole, base), *others = means.items()
    p_values = holm([randomisation_test(values - base, rng) for _, values in others])
    adjusted = {whole: None, **dict(zip((name for name, _ in others), p_values, strict=True))}
    rows = []
    for name, seeds in figures.items():
        of_seeds = [float(np.mean(list(values.values()))) for values in seeds]
        deviation = float(np.std(of_seeds, ddof=1)) if len(seeds) > 1 else None
        delta = float(means[name].mean() - base.mean())
        mean = float(np.mean(of_seeds))
        rows.append(Ablated(name, mean, deviation, len(seeds), delta, adjusted[name]))
    return tuple(rows)


def markdown(rows: Sequence[Ablated], measure: str) -> str:
    """The rows as a table for people."""
    lines = [f"| recipe | {measure} | seeds | from the whole | p (Holm) |", "|---|---|---|---|---|"]
    for row in rows:
        deviation = "" if row.deviation is None else f" ± {row.deviation:.4f}"
        tested = ("", "") if row.adjusted is None else (f"{row.delta:+.4f}", f"{row.adjusted:.3f}")
        lines.append(
            f"| {row.name} | {row.mean:.4f}{deviation} | {row.seeds} | {' | '.join(tested)} |"
        )
    return "\n".join(lines) + "\n"


def _by_query(seeds: Sequence[Values]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Each query's mean over the seeds, in the order of the first."""
    return np.array([np.mean([values[query] for values in seeds]) for query in seeds[0]])
