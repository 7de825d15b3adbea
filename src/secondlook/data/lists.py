"""Candidate lists: a query's documents on one line, as InsuranceQA publishes its pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.data.columns import tabbed, words
from secondlook.data.lines import CORRUPTS_COLUMNS, lines
from secondlook.data.rows import rankings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from secondlook.data.rows import HitRow
    from secondlook.types import Ranking


def read_run(path: Path) -> Iterator[Ranking]:
    """`qid<TAB>docid docid …`, best first: the score is 1/rank, so that the places give the order.

    A query whose list is empty leaves no trace, as in any run.
    """
    return rankings(_hits(path), path)


def _hits(path: Path) -> Iterator[HitRow]:
    rows = tabbed(path, lines(path, refuse=CORRUPTS_COLUMNS, may_be_empty=True), "qid docids", 1)
    for number, (qid, listed) in rows:
        for rank, doc_id in enumerate(words(listed), start=1):
            yield qid, doc_id, 1 / rank, number
