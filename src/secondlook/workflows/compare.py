"""Significance tests of runs against a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from secondlook.evaluate.evaluation import DEFAULT_MEASURES, labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.data.conversions import QrelsLike, Queries, RunLike
    from secondlook.evaluate.comparison import Comparisons


def compare(
    qrels: QrelsLike,
    base: RunLike,
    *runs: RunLike,
    measures: Sequence[str] = DEFAULT_MEASURES,
    alpha: float = 0.05,
    queries: Queries | None = None,
    names: Sequence[str] | None = None,
    seed: int = 0,
    run_format: str = "auto",
    qrels_format: str = "auto",
) -> Comparisons:
    """Test whether runs are significantly better or worse than a baseline.

    Judgments and runs are files, dicts, DataFrames or objects. A run that improves or worsens a
    measure has a p-value of at most `alpha` by Fisher's randomisation test, Holm-adjusted over all
    measures and runs. `queries` finds duplicates by their text, which count as one. `names`, one
    for the baseline and one for each run, are what the result calls them.

    >>> import secondlook as sl
    >>> qrels = {f"q{n}": {f"good{n}": 1, f"bad{n}": 0} for n in range(30)}
    >>> base = {f"q{n}": {f"good{n}": 1.0, f"bad{n}": 2.0} for n in range(30)}
    >>> better = {f"q{n}": {f"good{n}": 2.0, f"bad{n}": 1.0} for n in range(30)}
    >>> sl.compare(qrels, base, better, measures=["RR@10"]).verdict
    'helps'
    """
    import numpy as np

    from secondlook.data.conversions import load_qrels, load_queries, rankings_of
    from secondlook.errors import SecondlookError
    from secondlook.evaluate.compare import compare as test_runs

    if not runs:
        raise SecondlookError("give at least one run to compare with the baseline")
    given = [base, *runs]
    named = list(names) if names is not None else names_of(given)
    if len(named) != len(given):
        raise SecondlookError(
            f"names= has {len(named)} names for {len(given)} runs; name the baseline and each run"
        )
    known = (
        {query.id: query.text for query in load_queries(queries)} if queries is not None else None
    )
    (first, *others) = zip(named, (rankings_of(run, run_format) for run in given), strict=True)
    return test_runs(
        load_qrels(qrels, qrels_format),
        first,
        others,
        measures,
        rng=np.random.default_rng(seed),
        alpha=alpha,
        texts=known,
    )


def names_of(runs: Sequence[RunLike], *, first: str = "baseline") -> list[str]:
    """Files by their names, runs by their own, others by their place; no name twice."""
    files = [run for run in runs if isinstance(run, str | Path)]
    short = dict(zip(files, labels(map(str, files)), strict=True))
    named: list[str] = []
    for place, run in enumerate(runs):
        if isinstance(run, str | Path):
            named.append(short[run])
            continue
        own = getattr(run, "name", "")
        own = own if isinstance(own, str) else ""
        fallback = f"run {place}" if place else first
        named.append(own if own and own not in named else fallback)
    return named
