"""Which queries come when, and which of their documents are shown.

Both are drawn by a hash of names (seed, phase, epoch, query, document), not by a generator whose
state depends on what was drawn before. So two recipes that differ in one switch see the same
queries in the same order: with more negatives the same ones and some more, after a denoising the
same ones without those it dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from pyarrow import parquet

from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from secondlook.train.groups import Group, Groups
    from secondlook.types import Document, Query


@dataclass(frozen=True, slots=True)
class Drawn:
    """One query and the documents it is shown with this time."""

    query: Query
    documents: tuple[Document, ...]
    labels: tuple[int, ...]
    """Grades; above 0 is a positive."""
    teacher: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Draw:
    """How documents are drawn."""

    positives: int
    negatives: int
    seed: str
    """What sets this draw apart from others: the recipe's seed and the phase."""
    fill: bool = False
    """Whether places that one kind of documents leaves empty go to the other."""

    def documents(self, group: Group, epoch: int) -> Drawn:
        """Up to `positives` and `negatives` of the group's documents, positives first."""
        name = f"{self.seed}\0{epoch}\0{group.query.id}"
        order = sorted(
            range(len(group.documents)), key=lambda at: _hash(name, group.documents[at].id)
        )
        relevant = [at for at in order if group.labels[at] > 0]
        others = [at for at in order if group.labels[at] <= 0]
        first, second = self.shown(len(relevant), len(others))
        chosen = relevant[:first] + others[:second]
        return Drawn(
            group.query,
            tuple(group.documents[at] for at in chosen),
            tuple(group.labels[at] for at in chosen),
            None if group.teacher is None else tuple(group.teacher[at] for at in chosen),
        )

    def shown(self, relevant: int, others: int) -> tuple[int, int]:
        """How many of each kind are shown, where a query has so many."""
        if not self.fill:
            return min(relevant, self.positives), min(others, self.negatives)
        places = self.positives + self.negatives
        first = min(relevant, max(self.positives, places - others))
        return first, min(others, places - first)

    def order(self, query_ids: Sequence[str], epoch: int) -> list[int]:
        """In what order the queries come in an epoch: their places in `query_ids`."""
        name = f"{self.seed}\0{epoch}"
        return sorted(range(len(query_ids)), key=lambda at: _hash(name, query_ids[at]))


@dataclass(frozen=True, slots=True)
class Usable:
    """The groups that something can be learnt from."""

    rows: tuple[int, ...]
    """Their places among all groups."""
    query_ids: tuple[str, ...]
    documents: int
    """How many documents an epoch shows."""


def usable(groups: Groups, draw: Draw, *, teacher: bool, labels: bool) -> Usable:
    """Find them without reading texts: those with a teacher's scores, or with both labels.

    Raises SecondlookError where there is none.
    """
    rows: list[int] = []
    names: list[str] = []
    documents = 0
    for place, (name, positives, negatives, taught) in enumerate(_counts(groups)):
        if labels and not (positives and negatives):
            continue
        if teacher and not (taught and positives + negatives > 1):
            continue
        rows.append(place)
        names.append(name)
        documents += sum(draw.shown(positives, negatives))
    if not rows:
        wanted = "a teacher's scores" if teacher else "both a positive and a negative"
        verb = "teach" if teacher else "mine"
        files = ", ".join(path.name for path in groups.paths)
        raise SecondlookError(
            f"no query of {files} has {wanted}; make the groups anew with `secondlook {verb}`"
        )
    return Usable(tuple(rows), tuple(names), documents)


def _counts(groups: Groups) -> Iterator[tuple[str, int, int, bool]]:
    """Of each group: its query, how many positives and others it has, whether it has a teacher."""
    for path in groups.paths:
        with parquet.ParquetFile(path, memory_map=True) as file:
            for batch in file.iter_batches(columns=["query_id", "labels", "teacher"]):
                labels = batch.column("labels")
                positive = np.append(0, np.cumsum(labels.flatten().to_numpy() > 0))
                ends = np.cumsum(np.append(0, labels.value_lengths().to_numpy()))
                taught = batch.column("teacher").is_valid().to_pylist()
                positives = np.diff(positive[ends])
                others = np.diff(ends) - positives
                yield from zip(
                    batch.column("query_id").to_pylist(),
                    positives.tolist(),
                    others.tolist(),
                    taught,
                    strict=True,
                )


def _hash(name: str, one: str) -> bytes:
    return blake2b(f"{name}\0{one}".encode(), digest_size=16).digest()
