"""Where a new run helps: the differences of a comparison, by what is known of each query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from secondlook.evaluate.significance import bootstrap_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from secondlook.evaluate.comparison import Difference
    from secondlook.types import Document, Qrels, Query, Ranking

FEWEST = 5
"""Queries of a kind; kinds with fewer stand together as "other"."""
NOT_FOUND = 10**6
"""The rank of what was not found."""


@dataclass(frozen=True, slots=True)
class Facet:
    """One thing that is known of queries: a number of each, or a name."""

    name: str
    values: Mapping[str, float | str]
    """Query id → its value; queries without one are left out."""
    edges: tuple[float, ...] = ()
    """Where numbers begin a new group; without them, at their quartiles."""
    labels: tuple[str, ...] = field(default=())
    """Of the groups that `edges` make."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The queries of one group, and how they fared."""

    label: str
    queries: int
    base: float
    new: float
    low: float
    """The interval of the difference, not corrected for the many groups; `high` is its end."""
    high: float

    @property
    def delta(self) -> float:
        """The difference of the means."""
        return self.new - self.base


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A comparison by one facet."""

    name: str
    slices: tuple[Slice, ...]


def break_down(difference: Difference, facet: Facet, rng: np.random.Generator) -> Breakdown:
    """The difference in each group of the facet's values; groups without queries are left out."""
    known = {query: facet.values[query] for query in difference.values if query in facet.values}
    slices = []
    for label, queries in groups_of(facet, known):
        pairs = np.array([difference.values[query] for query in queries])  # [queries, base | new]
        low, high = bootstrap_interval(pairs[:, 1] - pairs[:, 0], rng)
        base, new = pairs.mean(axis=0).tolist()
        slices.append(Slice(label, len(queries), base, new, low, high))
    return Breakdown(facet.name, tuple(slices))


def query_facets(
    queries: Iterable[Query], split_words: Callable[[str], int] | None = None
) -> list[Facet]:
    """What the queries' texts say; `split_words` counts the words that a vocabulary lacks."""
    asked = list(queries)
    facets = [
        Facet("query length in words", {q.id: len(q.text.split()) for q in asked}),
        Facet("query type", {q.id: q.type for q in asked if q.type is not None}),
    ]
    if split_words is not None:
        counts = {query.id: split_words(query.text) for query in asked}
        name = "query words outside the vocabulary"
        facets.append(Facet(name, counts, (1, 2), ("none", "one", "two or more")))
    return [facet for facet in facets if facet.values]


def first_stage_facet(qrels: Qrels, first: Iterable[Ranking], relevant_from: int) -> Facet:
    """How deep the first stage had the first relevant document."""
    ranks = dict.fromkeys(qrels, NOT_FOUND)
    for ranking in first:
        grades = qrels.get(ranking.query_id, {})
        for rank, hit in enumerate(ranking.hits, start=1):
            if grades.get(hit.doc_id, 0) >= relevant_from:
                ranks[ranking.query_id] = rank
                break
    labels = ("1", "2–3", "4–10", "11 or deeper", "not found")
    return Facet("first-stage rank of the first relevant", ranks, (2, 4, 11, NOT_FOUND), labels)


def document_facets(
    queries: Iterable[Query],
    qrels: Qrels,
    texts: Mapping[str, Document],
    terms: Callable[[str], Collection[str]],
    relevant_from: int,
) -> list[Facet]:
    """What the relevant documents say, as far as `texts` holds them."""
    overlap: dict[str, float | str] = {}
    length: dict[str, float | str] = {}
    for query in queries:
        grades = qrels.get(query.id, {})
        relevant = [
            f"{texts[doc_id].title} {texts[doc_id].text}"
            for doc_id, grade in grades.items()
            if grade >= relevant_from and doc_id in texts
        ]
        wanted = set(terms(query.text))
        if relevant and wanted:
            shares = [len(wanted & set(terms(text))) / len(wanted) for text in relevant]
            overlap[query.id] = float(np.mean(shares))
            length[query.id] = float(np.mean([len(text.split()) for text in relevant]))
    return [
        Facet("share of query words in the relevant documents", overlap),
        Facet("length of the relevant documents in words", length),
    ]


def every_length(queries: Iterable[Query]) -> Facet:
    """Query lengths one by one, as MarkedBERT's table 2: two words or fewer, 3, …, 10 or more."""
    lengths = {query.id: len(query.text.split()) for query in queries}
    labels = ("2 or fewer", *map(str, range(3, 10)), "10 or more")
    return Facet("query length in words", lengths, tuple(range(3, 11)), labels)


def groups_of(facet: Facet, known: Mapping[str, float | str]) -> list[tuple[str, list[str]]]:
    """Labels and query ids; names by their size, numbers in their order."""
    if any(isinstance(value, str) for value in known.values()):
        return _by_name({query: str(value) for query, value in known.items()})
    return _by_number(facet, {query: float(value) for query, value in known.items()})


def _by_name(known: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for query, name in known.items():
        groups.setdefault(name, []).append(query)
    large = {name: queries for name, queries in groups.items() if len(queries) >= FEWEST}
    rest = [query for name, queries in groups.items() if name not in large for query in queries]
    ordered = sorted(large.items(), key=lambda group: -len(group[1]))
    return [*ordered, *([("other", rest)] if rest else [])]


def _by_number(facet: Facet, known: Mapping[str, float]) -> list[tuple[str, list[str]]]:
    if not known:
        return []
    numbers = np.array(list(known.values()))
    edges = np.array(facet.edges)
    if not len(edges):
        edges = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75], method="higher"))
        edges = edges[edges > numbers.min()]
    places = np.searchsorted(edges, numbers, side="right")
    names = np.array(list(known))
    groups = []
    for place in range(len(edges) + 1):
        chosen = places == place
        if chosen.any():
            label = facet.labels[place] if facet.labels else _span(numbers[chosen])
            groups.append((label, names[chosen].tolist()))
    return groups


def _span(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """From the least to the greatest, whole numbers as such."""
    low, high = numbers.min(), numbers.max()
    whole = (numbers == np.round(numbers)).all()
    shown = [f"{end:.0f}" if whole or high > 20 else f"{end:.2f}" for end in (low, high)]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]}–{shown[1]}"
