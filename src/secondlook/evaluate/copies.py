"""Judged queries that are copies of one another, and so are no evidence of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from secondlook.evaluate.side import Side
    from secondlook.types import Qrels


def distinct_queries(
    qrels: Qrels, base: Side, new: Side, texts: Mapping[str, str] | None = None
) -> list[tuple[str, ...]]:
    """The judged queries, each with its copies behind it, in the order of the judgments.

    Copies have the same text, where texts are given; or the same judgments, and in both runs the
    same documents with the same scores.
    """
    first_with: dict[Hashable, str] = {}
    leader: dict[str, str] = {}

    def lead(query: str) -> str:
        while leader[query] != query:
            query = leader[query]
        return query

    judged = [query for query, grades in qrels.items() if grades]
    for query in judged:
        leader[query] = query
        for mark in _marks(query, qrels, base, new, texts or {}):
            original = lead(first_with.setdefault(mark, query))
            leader[lead(query)] = original
    groups: dict[str, list[str]] = {}
    for query in judged:
        groups.setdefault(lead(query), []).append(query)
    return [tuple(group) for group in groups.values()]


def _marks(
    query: str, qrels: Qrels, base: Side, new: Side, texts: Mapping[str, str]
) -> Iterator[Hashable]:
    """What no other query than a copy has too."""
    if text := " ".join(texts.get(query, "").casefold().split()):
        yield text
    results = base.fingerprints.get(query), new.fingerprints.get(query)
    if results != (None, None):
        yield frozenset(qrels[query].items()), results
