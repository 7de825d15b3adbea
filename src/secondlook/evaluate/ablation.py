"""Tables of what parts are worth: means over seeds, tests against the whole, and contrasts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from secondlook.evaluate.seeds import over_seeds
from secondlook.evaluate.significance import bootstrap_interval, holm, randomisation_test

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from secondlook.evaluate.seeds import OverSeeds

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


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a recipe, and where its worth is seen."""

    name: str
    having: str
    """A recipe with it, and `lacking` the same recipe without it."""
    lacking: str
    queries: Collection[str] | None = None
    """Those that count, such as those it is meant for; None is all."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """What one part changes: a recipe with it against the same recipe without it."""

    part: str
    queries: int
    base: float
    """The mean without the part, over the seeds that both recipes were trained with."""
    by_seed: tuple[float, ...]
    """The difference of the means with each of these seeds."""
    low: float
    """The 95% interval of the mean difference, by a bootstrap over queries of each query's mean
    over seeds; `high` is its end. What other seeds would give is not in it."""
    high: float
    p: float
    """Of a randomisation test over the same differences."""
    adjusted: float
    """By Holm, over the contrasts of one table."""
    over_seeds: OverSeeds | None = None
    """For other seeds too, with p by Holm; None where no recipe of the table has two."""

    @property
    def delta(self) -> float:
        """The mean difference."""
        return float(np.mean(self.by_seed))


def contrasts(
    figures: Mapping[str, Mapping[int, Values]],
    parts: Sequence[Part],
    rng: np.random.Generator,
) -> tuple[Contrast, ...]:
    """What each part changes; `figures` are each recipe's values per query by seed.

    Only seeds that both recipes have count: the same seed draws the same pairs for both. A part
    without a common seed, or without queries, is left out.
    """
    found, differences = [], []
    for part in parts:
        seeds = sorted(figures.get(part.having, {}).keys() & figures.get(part.lacking, {}).keys())
        measured = figures[part.lacking][seeds[0]] if seeds else {}
        queries = [query for query in measured if part.queries is None or query in part.queries]
        if not queries:
            continue
        new, base = (
            np.array([[figures[name][seed][query] for query in queries] for seed in seeds])
            for name in (part.having, part.lacking)
        )  # [seeds, queries]
        differences.append(new - base)
        deltas = (new - base).mean(axis=0)
        low, high = bootstrap_interval(deltas, rng)
        by_seed = tuple((new - base).mean(axis=1).tolist())
        p = randomisation_test(deltas, rng)
        found.append(
            Contrast(part.name, len(queries), float(base.mean()), by_seed, low, high, p, p)
        )
    wider = over_seeds(differences)
    adjusted = holm([contrast.p for contrast in found])
    of_both = iter(holm([both.p for both in wider if both is not None]))
    return tuple(
        replace(
            one,
            adjusted=p,
            over_seeds=None if both is None else replace(both, p=next(of_both)),
        )
        for one, p, both in zip(found, adjusted, wider, strict=True)
    )


def contrast_table(rows: Sequence[Contrast], measure: str) -> str:
    """The contrasts as a table for people."""
    over_queries = f"| part | queries | {measure} without | difference | 95% interval | p (Holm) "
    over_both = "| by seed | 95%, other seeds too | p (Holm), other seeds too |"
    lines = [over_queries + over_both, "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        seeds, both = ", ".join(f"{delta:+.4f}" for delta in row.by_seed), row.over_seeds
        wider = (
            ("", "") if both is None else (f"{both.low:+.4f} to {both.high:+.4f}", f"{both.p:.3f}")
        )
        lines.append(
            f"| {row.part} | {row.queries} | {row.base:.4f} | {row.delta:+.4f} | "
            f"{row.low:+.4f} to {row.high:+.4f} | {row.adjusted:.3f} | {seeds} | "
            f"{' | '.join(wider)} |"
        )
    return "\n".join(lines) + "\n"


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
