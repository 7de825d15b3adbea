"""Judgments out of clicks, by the position-based model.

A click says: somebody looked at this place, and liked what stood there (Richardson et al., 2007).

    P(click on d for q at rank k) = seen(k) · liked(q, d)        seen(k) = k^-η

`seen(1)` is 1, so `liked` is the share of those at the first place who would click.

η is found from documents that stood at more than one rank for the same query: given how often such
a document was clicked in all, *where* it was clicked depends on η alone, not on how good it is, so
that a good ranker's habit of putting good documents on top is not taken for people's habit of
looking there. With n(k) showings at rank k and C clicks in all, the share of rank k in them is
n(k)·k^-η / Σ n(j)·j^-η; η is where the clicks' mean log rank is what these shares promise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from secondlook.data.origin import query_id
from secondlook.errors import SecondlookError
from secondlook.recipe import Settings
from secondlook.types import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from secondlook.data.clicks import Impression
    from secondlook.types import Qrels

_STEEPEST = 4.0  # the second place seen by one in sixteen: no page of results is read so
_VAGUE = 0.25  # a standard error of η beyond which 1/k and its square root are hard to tell apart


class ClickSettings(Settings):
    """When clicks make a judgment."""

    eta: float | None = Field(None, ge=0)
    """How steeply attention falls with the rank; None finds it in the log."""
    relevant: float = Field(0.2, gt=0)
    """Liked by this share of those who saw it, a document is relevant."""
    looks: float = Field(2.0, gt=0)
    """Seen less often than this, rank taken into account, it stays unjudged."""


@dataclass(frozen=True, slots=True)
class Examination:
    """How attention falls with the rank."""

    eta: float
    error: float = 0.0
    """Standard error; 0 where η was given."""

    def __call__(self, ranks: NDArray[Any]) -> NDArray[np.float64]:
        """The share of people who look there."""
        return np.asarray(ranks, dtype=np.float64) ** -self.eta


@dataclass(frozen=True)
class Tally:
    """How often documents stood at each rank for a query, and how often they were clicked there."""

    queries: tuple[Query, ...]
    pairs: tuple[tuple[str, str], ...]
    """Query id and document id."""
    impressions: int
    pair: NDArray[np.int64]  # [rows]: a place in `pairs`
    rank: NDArray[np.int64]  # [rows], from 1
    shown: NDArray[np.int64]  # [rows]
    clicked: NDArray[np.int64]  # [rows]

    @classmethod
    def of(cls, impressions: Iterable[Impression]) -> Tally:
        """Count them; queries that differ in case and spaces only are one, as first spelled."""
        queries: dict[str, Query] = {}
        pairs: dict[tuple[str, str], int] = {}
        shown: Counter[tuple[int, int]] = Counter()
        clicked: Counter[tuple[int, int]] = Counter()
        count = 0
        for impression in impressions:
            count += 1
            text = " ".join(impression.query.split())
            query = queries.setdefault(text.casefold(), Query(query_id(text), text))
            for rank, doc_id in enumerate(impression.shown, start=1):
                place = pairs.setdefault((query.id, doc_id), len(pairs)), rank
                shown[place] += 1
                clicked[place] += doc_id in impression.clicked
        places = np.array(list(shown), dtype=np.int64).reshape(-1, 2)
        return cls(
            tuple(queries.values()),
            tuple(pairs),
            count,
            places[:, 0],
            places[:, 1],
            np.array(list(shown.values()), dtype=np.int64),
            np.array([clicked[place] for place in shown], dtype=np.int64),
        )

    @cached_property
    def clicks(self) -> NDArray[np.float64]:
        """Of each pair, at all ranks."""
        return self.sum(self.clicked)

    def looks(self, seen: Examination) -> NDArray[np.float64]:
        """How often each pair's document was seen, as far as the ranks it stood at tell."""
        return self.sum(self.shown * seen(self.rank))

    def sum(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Of each pair, over its rows."""
        weights = np.asarray(rows, dtype=np.float64)
        return np.bincount(self.pair, weights, len(self.pairs)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class ClickLabels:
    """What the clicks say."""

    queries: tuple[Query, ...]
    """Those with a relevant document."""
    qrels: Qrels
    """1 where those who saw the document liked it, 0 where they did not."""
    seen: Examination
    origin: str
    """For lineage and card."""


def judge(tally: Tally, settings: ClickSettings) -> ClickLabels:
    """Judgments for the documents that were seen often enough."""
    given = settings.eta
    seen = examination(tally) if given is None else Examination(given)
    liked, looks = attraction(tally, seen), tally.looks(seen)
    graded: dict[str, dict[str, int]] = {}
    for place in np.flatnonzero(looks >= settings.looks).tolist():
        query_id, doc_id = tally.pairs[place]
        graded.setdefault(query_id, {})[doc_id] = int(liked[place] >= settings.relevant)
    qrels = {query_id: grades for query_id, grades in graded.items() if any(grades.values())}
    if not qrels:
        raise SecondlookError(
            f"no document of {tally.impressions:,} impressions was seen {settings.looks:g} times "
            f"and liked by {settings.relevant:g} of those who saw it; lower `looks` or `relevant`, "
            "or gather more clicks"
        )
    origin = (
        f"clicks: {tally.impressions:,} impressions, seen at rank k by k^-{seen.eta:.2f}, relevant "
        f"from {settings.relevant:g} on, after {settings.looks:g} looks"
    )
    queries = tuple(query for query in tally.queries if query.id in qrels)
    return ClickLabels(queries, qrels, seen, origin)


def attraction(tally: Tally, seen: Examination) -> NDArray[np.float64]:
    """Of each pair, clicks per look; the mean of all pairs counts as one look more."""
    looks = tally.looks(seen)
    mean = tally.clicks.sum() / looks.sum() if len(looks) else 0.0
    return np.asarray((tally.clicks + mean) / (looks + 1))


def examination(tally: Tally) -> Examination:
    """η as the log has it; raises where documents hardly change their ranks."""
    from scipy.optimize import brentq

    def beyond(eta: float) -> float:
        """By how much the expected mean log rank of clicks is above the observed."""
        return float(tally.clicks @ _log_rank(tally, eta)[0]) - observed

    observed = float(tally.clicked @ np.log(tally.rank))
    if beyond(0.0) <= 0:  # no place is looked at less than another
        eta = 0.0
    elif beyond(_STEEPEST) >= 0:
        eta = _STEEPEST
    else:
        eta = float(brentq(beyond, 0.0, _STEEPEST, xtol=1e-6))
    known = float(tally.clicks @ _log_rank(tally, eta)[1])
    if known * _VAGUE**2 < 1:
        raise SecondlookError(
            "the log does not show how attention falls with the rank: too few clicked documents "
            "stood at more than one rank for the same query; say it, as `eta` 1 for 1/rank, or "
            "gather more clicks"
        )
    return Examination(eta, known**-0.5)


def _log_rank(tally: Tally, eta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of the log rank of a pair's clicks, for each pair."""
    log = np.log(tally.rank)
    weight = tally.shown * Examination(eta)(tally.rank)
    whole = tally.sum(weight)
    mean = tally.sum(weight * log) / whole
    return mean, np.maximum(tally.sum(weight * log**2) / whole - mean**2, 0.0)
