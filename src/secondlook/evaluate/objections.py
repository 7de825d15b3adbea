"""Why a comparison should not be relied on, whatever its p-values say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from secondlook.evaluate.side import Side

FEW_QUERIES = 25
"""Fewer judged queries than these are a sample too small to decide by."""
SMALL_SHARE = 0.05
"""Copied or unanswered queries up to this share are only warned of."""
UNORDERED_SHARE = 0.25
"""Above this share of queries whose top ten is one tie, a run is hardly a ranking."""
HIGHEST_ALPHA = 0.1


class Reason(StrEnum):
    """What can be wrong with a comparison; somebody may allow it with open eyes."""

    duplicates = "duplicates"
    ties = "ties"
    missing = "missing"
    few_queries = "few-queries"
    alpha = "alpha"


@dataclass(frozen=True, slots=True)
class Objection:
    """A reason not to accept a verdict, unless somebody allows it."""

    code: Reason
    sentence: str
    voids: bool = False
    """Whether the verdict would be another without it; then it is "cannot tell"."""


def objections(
    base: Side,
    new: Side,
    groups: Sequence[tuple[str, ...]],
    alpha: float,
    *,
    ties_decide: bool,
    missing_decide: bool,
) -> tuple[Objection, ...]:
    """All that is wrong with a comparison.

    `groups` are the judged queries, each with its copies. `ties_decide` and `missing_decide` say
    that the verdict changes with another order of equal scores, or without the queries that only
    one run answers.
    """
    return (
        *_duplicates(base, groups),
        *_ties(base, new, decide=ties_decide),
        *_missing(base, new, decide=missing_decide),
        *_size(len(groups), alpha),
    )


def _duplicates(base: Side, groups: Sequence[tuple[str, ...]]) -> Iterator[Objection]:
    judged = base.evaluation.judged
    if judged - len(groups) > SMALL_SHARE * judged:
        yield Objection(Reason.duplicates, f"{_copies(judged, groups)}; copies are no evidence")


def _copies(judged: int, groups: Sequence[tuple[str, ...]]) -> str:
    """How many queries are copies, with an example."""
    example = next(group for group in groups if len(group) > 1)
    return (
        f"{judged} judged queries are only {len(groups)} different ones "
        f"({example[1]} is a copy of {example[0]}), and each is counted once"
    )


def _ties(base: Side, new: Side, *, decide: bool) -> Iterator[Objection]:
    if decide:
        yield Objection(
            Reason.ties,
            "the verdict depends on the order of documents with equal scores, which is arbitrary: "
            "ordered otherwise, they give another one",
            voids=True,
        )
        return
    for side in (base, new):
        if side.unordered > UNORDERED_SHARE * side.answered:
            yield Objection(
                Reason.ties,
                f"{side.name} gives the whole top 10 the same score in {side.unordered} of "
                f"{side.answered} queries; only document ids order it",
            )


def _missing(base: Side, new: Side, *, decide: bool) -> Iterator[Objection]:
    for side in (base, new):
        share = side.evaluation.missing / side.evaluation.judged
        if not (share > SMALL_SHARE or (share and decide)):
            continue
        told = missing_told(side.name, side.evaluation.missing, side.evaluation.judged)
        if decide:
            told += ", and without such queries nothing can be told"
        yield Objection(Reason.missing, told, voids=decide)


def missing_told(run: str, missing: int, judged: int) -> str:
    """How many queries a run leaves unanswered."""
    return f"{run} has no results for {missing} of {judged} judged queries; each counts as zero"


def _size(queries: int, alpha: float) -> Iterator[Objection]:
    if queries < FEW_QUERIES:
        told = "one judged query is" if queries == 1 else f"{queries} judged queries are"
        yield Objection(
            Reason.few_queries,
            f"{told} few; even a large difference may be theirs alone. "
            f"Judge at least {FEW_QUERIES}",
        )
    if alpha > HIGHEST_ALPHA:
        yield Objection(
            Reason.alpha,
            f"with alpha {alpha:g} up to {alpha:.0%} of changes without any effect are said to "
            "help or hurt; .05 is usual",
        )
