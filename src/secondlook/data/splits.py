"""Which queries are learnt from, which are validated on, and which give the verdict."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from secondlook.data.formats import read_qrels, read_queries, write_qrels, write_queries
from secondlook.data.near_duplicates import clusters, linked
from secondlook.data.origin import GENERATED, read_origin
from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from secondlook.types import Qrels

    Judged = dict[str, dict[str, int]]

Overlap = Literal["drop", "refuse", "keep"]
"""What becomes of training and validation queries that repeat a query they are tested by."""

_SPLIT_FILE = re.compile(r"(train|dev|test)\.(?:tsv|txt|trec)(?:\.gz|\.zst)?")
_HELD_OUT = 0.2
_MOST_VALIDATED = 200  # validation is repeated; more queries than that only cost time
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Repeat:
    """A query of one split that asks what a query of a later one asks."""

    split: str
    query_id: str
    text: str
    of_split: str
    of_text: str

    def __str__(self) -> str:
        return (
            f"{self.split} query {self.query_id} {self.text!r} ({self.of_split}: {self.of_text!r})"
        )


@dataclass(frozen=True, slots=True)
class Splits:
    """Three sets of judgments with no query in common, by id or, unless kept, by text."""

    train: Qrels
    dev: Qrels
    test: Qrels
    repeats: tuple[Repeat, ...] = ()
    """What was dropped, or kept, because it repeats a query of dev or test."""

    def repeated(self) -> str:
        """The repeats in words: how many, and the first three."""
        return _in_words(self.repeats)


def read_splits(folder: Path, overlap: Overlap = "drop") -> Splits:
    """The judgments of `folder/qrels`: `train`, `dev` and `test`, each one file.

    A file ends in .tsv, .txt or .trec, or is compressed (.gz, .zst); two of one split are refused.

    What is missing is cut off what is there, by a hash of the query's id, so that a query stays
    where it is when others are added: without `test` the verdict is given by `dev`, without both
    by a fifth of `train`; without `dev` a part of `train` validates. Queries of near-duplicate
    texts go into one split together, and so do queries that a model generated from one passage.

    Where splits that were given share texts, `overlap` says what to do: drop the queries of `train`
    that repeat one of `dev` or `test` and those of `dev` that repeat one of `test`; refuse, which
    raises SecondlookError; or keep them.
    """
    train, dev, test = _given(folder)
    if not test:
        test, dev = dev, {}
    later = {*dev, *test}
    train = {query: grades for query, grades in train.items() if query not in later}
    dev = {query: grades for query, grades in dev.items() if query not in test}
    judged = {**train, **dev, **test}
    texts = {query.id: query.text for query in read_queries(folder) if query.id in judged}
    if judged and not texts:
        raise SecondlookError(
            f"{folder}: none of the {len(judged):,} judged queries has a text: the judgments name "
            f"{next(iter(judged))!r}, for example; look whether both files have the same ids"
        )
    alike = clusters({query: texts.get(query, "") for query in judged})
    repeats = _repeats({"train": train, "dev": dev, "test": test}, texts, alike)
    if repeats and overlap == "refuse":
        raise SecondlookError(
            f"{folder / 'qrels'}: the splits share queries, so the verdict would be given by what "
            f"was learnt: {_in_words(repeats)}. Remove them, or let them be dropped"
        )
    if overlap != "keep":
        gone = {repeat.query_id for repeat in repeats}
        train, dev = (
            {query: grades for query, grades in part.items() if query not in gone}
            for part in (train, dev)
        )
    if read_origin(folder / "qrels" / "train.tsv").startswith(GENERATED):
        alike = linked(alike, [*alike.items(), *_of_one_passage(train)])
    if not test:
        test, train = _cut(train, "test", len(train), alike)
    if not dev:
        dev, train = _cut(train, "dev", _MOST_VALIDATED, alike)
    for name, part in {"learn from": train, "validate on": dev, "judge by": test}.items():
        if not part:
            raise SecondlookError(f"{folder}: too few judged queries; none is left to {name}")
    return Splits(train, dev, test, repeats)


def _given(folder: Path) -> tuple[Judged, Judged, Judged]:
    """The judgments of train, dev and test; empty where there are none."""
    found = split_files(folder)
    if "train" not in found:
        raise SecondlookError(
            f"{folder / 'qrels'} has no train.tsv; `tune` learns from judged queries: put all you "
            "have there, and it holds some out for the verdict; `clicks` and `expander` make some"
        )
    train, dev, test = (
        read_qrels(found[name]) if name in found else {} for name in ("train", "dev", "test")
    )
    return train, dev, test


def split_files(folder: Path) -> dict[str, Path]:
    """The files of the splits by their names; an editor's backups beside them are none."""
    found: dict[str, Path] = {}
    for path in sorted((folder / "qrels").glob("*")):
        if named := _SPLIT_FILE.fullmatch(path.name):
            other = found.setdefault(named[1], path)
            if other != path:
                raise SecondlookError(
                    f"{path.parent} has two files of one split, {other.name} and {path.name}: keep "
                    "one of them there"
                )
    return found


def _repeats(
    parts: dict[str, Judged], texts: Mapping[str, str], alike: Mapping[str, str]
) -> tuple[Repeat, ...]:
    """The queries of a split that are near-duplicates of one in a split after it."""
    found = []
    later: dict[str, tuple[str, str]] = {}
    for name in ("test", "dev", "train"):
        for query in parts[name]:
            if query in texts and alike[query] in later:
                of_split, of_text = later[alike[query]]
                found.append(Repeat(name, query, texts[query], of_split, of_text))
        for query in parts[name]:
            if query in texts:
                later.setdefault(alike[query], (name, texts[query]))
    return tuple(found)


def _of_one_passage(qrels: Judged) -> Iterator[tuple[str, str]]:
    """Pairs of queries with a relevant passage in common.

    A query generator writes several for each: what is learnt of the passage by one of them is the
    whole answer to the others.
    """
    first_of: dict[str, str] = {}
    for query, grades in qrels.items():
        for doc_id, grade in grades.items():
            if grade > 0:
                yield first_of.setdefault(doc_id, query), query


def _in_words(repeats: tuple[Repeat, ...]) -> str:
    counts = Counter((repeat.split, repeat.of_split) for repeat in repeats)
    said = [
        f"{count:,} {one} queries repeat {other} queries" for (one, other), count in counts.items()
    ]
    return f"{', '.join(said)}, such as {'; '.join(map(str, repeats[:_SHOWN]))}"


def add_judged(made: Path, judged: Path) -> None:
    """Put what people judged in the folder `judged`, if anything, beside what was `made`.

    Its `dev` and `test` then validate and give the verdict, as far as they are there; queries that
    were made and read like one of theirs are left out, so that none is learnt from and judged by.
    Called again it changes nothing.
    """
    found = {
        name: read_qrels(path)
        for name, path in split_files(judged).items()
        if name in ("dev", "test")
    }
    held = {query_id for qrels in found.values() for query_id in qrels}
    if not held:
        return
    asked = [query for query in read_queries(judged) if query.id in held]
    own_texts = {("made", query.id): query.text for query in read_queries(made)}
    alike = clusters(own_texts | {("asked", query.id): query.text for query in asked})
    taken = {alike["asked", query.id] for query in asked}
    kept = [
        query
        for query in read_queries(made)
        if alike["made", query.id] not in taken and query.id not in held
    ]
    own = {query.id for query in kept}
    train = read_qrels(made / "qrels" / "train.tsv")
    write_queries(made / "queries.jsonl", [*kept, *asked])
    write_qrels(made / "qrels" / "train.tsv", {one: train[one] for one in train if one in own})
    for name, qrels in found.items():
        write_qrels(made / "qrels" / f"{name}.tsv", qrels)


def some(qrels: Qrels, count: int) -> Judged:
    """At most so many of the queries, always the same ones, in their order."""
    order = sorted(qrels, key=lambda query: blake2b(f"some\0{query}".encode()).digest())
    taken = set(order[:count])
    return {query: dict(grades) for query, grades in qrels.items() if query in taken}


def _cut(qrels: Judged, name: str, most: int, alike: Mapping[str, str]) -> tuple[Judged, Judged]:
    """About a fifth of the queries, at most so many, and the rest; what is alike together."""
    together: dict[str, list[str]] = {}
    for query in qrels:
        together.setdefault(alike[query], []).append(query)

    def place(queries: list[str]) -> bytes:
        return min(blake2b(f"{name}\0{query}".encode()).digest() for query in queries)

    wanted = min(most, round(len(qrels) * _HELD_OUT))
    taken: set[str] = set()
    for queries in sorted(together.values(), key=place):
        if len(taken) >= wanted:
            break
        taken.update(queries)
    return (
        {query: grades for query, grades in qrels.items() if query in taken},
        {query: grades for query, grades in qrels.items() if query not in taken},
    )
