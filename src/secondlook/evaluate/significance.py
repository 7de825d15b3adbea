"""What chance alone could have done: tests and intervals over differences per query.

`deltas` is everywhere the new system's value minus the base's, one for each query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 10_000
EXACT = 13
"""Up to so many queries every one of the 2^n sign patterns is tried: fewer than RESAMPLES."""
POWER = 0.8
MOST_QUERIES = 1_000_000
_CELLS = 2**22
"""Numbers drawn at once."""
_ROUNDING = 1e-12


def bootstrap_interval(
    deltas: Floats, rng: np.random.Generator, level: float = 0.95
) -> tuple[float, float]:
    """Where the mean difference lies with this confidence: Efron's BCa bootstrap over queries.

    The acceleration is that of the jackknife, which for a mean is a sixth of the skewness over √n.
    """
    from scipy.special import ndtr, ndtri

    n, mean = len(deltas), deltas.mean()
    centred = deltas - mean
    if n < 2 or np.abs(centred).max() < _ROUNDING:
        return float(mean), float(mean)
    means = np.concatenate(
        [deltas[rng.integers(0, n, (rows, n))].mean(axis=1) for rows in _chunks(n)]
    )
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means <= mean)) / (2 * len(means))
    bias = ndtri(below)
    acceleration = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    z = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(means, ndtr(bias + z / (1 - acceleration * z)))
    return float(low), float(high)


def t_test(deltas: Floats) -> float:
    """The two-sided p of Student's paired t-test."""
    from scipy.special import stdtr

    n = len(deltas)
    if n < 2 or np.abs(deltas).max() < _ROUNDING:
        return 1.0
    spread = deltas.std(ddof=1)
    if spread < _ROUNDING:
        return 0.0
    return float(2 * stdtr(n - 1, -abs(deltas.mean()) / spread * np.sqrt(n)))


def randomisation_test(deltas: Floats, rng: np.random.Generator) -> float:
    """The two-sided p of Fisher's paired randomisation test.

    If the systems were the same, each query's two values could as well have been swapped. Exact
    for few queries; else by 10,000 random swaps, of which the observed one counts as one more, so
    that p is never too small.
    """
    n, seen = len(deltas), abs(deltas.sum())
    if n <= EXACT:
        patterns = np.arange(2**n)[:, None] >> np.arange(n) & 1  # [2^n, n]
        return float((np.abs((1.0 - 2.0 * patterns) @ deltas) >= seen - _ROUNDING).mean())
    extreme = sum(
        np.count_nonzero(np.abs(_signs(rng, rows, n) @ deltas) >= seen - _ROUNDING)
        for rows in _chunks(n)
    )
    return float((1 + extreme) / (1 + RESAMPLES))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values as they stand when all of them were tried: Holm's step-down correction.

    Each may be read as if it were the only one; the chance of any false alarm stays what it was.
    """
    adjusted, floor = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = floor
    return adjusted


def power(effect: float, queries: int, alpha: float) -> float:
    """The chance that the paired t-test finds a difference of `effect` standard deviations."""
    from scipy.special import nctdtr, stdtrit

    freedom, shift = queries - 1, abs(effect) * np.sqrt(queries)
    beyond = stdtrit(freedom, 1 - alpha / 2)
    below = nctdtr(freedom, shift, np.array([-beyond, beyond]))
    below = np.nan_to_num(below, nan=0.0)  # of a large effect, what is nearly 0 comes as NaN
    return float(1 - below[1] + below[0])


def queries_needed(deltas: Floats, alpha: float) -> int | None:
    """How many queries would tell, in 8 of 10 cases, if the difference really is what was seen.

    None where that is no number: one query does not show how much queries differ; or nothing was
    seen, or so little that a million would not do.
    """
    if len(deltas) < 2 or abs(deltas.mean()) < _ROUNDING:
        return None
    # all of n queries must gain for a randomisation test's p of 2^(1-n): fewer can never tell
    fewest = 1 + int(np.ceil(np.log2(1 / alpha)))
    spread = max(deltas.std(ddof=1), _ROUNDING)
    effect = min(abs(deltas.mean()) / spread, 10.0)  # beyond, two queries do
    if power(effect, fewest, alpha) >= POWER:
        return fewest
    enough = fewest
    while power(effect, enough, alpha) < POWER:
        enough *= 2
        if enough > MOST_QUERIES:
            return None
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if power(effect, middle, alpha) < POWER:
            too_few = middle
        else:
            enough = middle
    return enough


def detectable(deltas: Floats, alpha: float) -> float | None:
    """The smallest mean difference that so many queries would show in 8 of 10 cases, nearly.

    None for one query, which shows nothing.
    """
    from scipy.special import stdtrit

    n = len(deltas)
    if n < 2:
        return None
    quantiles = stdtrit(n - 1, 1 - alpha / 2) + stdtrit(n - 1, POWER)
    return float(quantiles * deltas.std(ddof=1) / np.sqrt(n))


def _signs(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    return rng.integers(0, 2, (rows, columns), np.int8) * 2.0 - 1.0


def _chunks(columns: int) -> Iterator[int]:
    """RESAMPLES in parts whose rows of so many columns fit the memory."""
    step = max(1, _CELLS // columns)
    for start in range(0, RESAMPLES, step):
        yield min(step, RESAMPLES - start)
