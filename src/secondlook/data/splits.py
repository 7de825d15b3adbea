"""Which queries are learnt from, which are validated on, and which give the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from secondlook.data.formats import read_qrels, read_queries, write_qrels, write_queries
from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from pathlib import Path

    from secondlook.types import Qrels

    Judged = dict[str, dict[str, int]]

_HELD_OUT = 0.2
_MOST_VALIDATED = 200  # validation is repeated; more queries than that only cost time


@dataclass(frozen=True, slots=True)
class Splits:
    """Three sets of judgments with no query in common."""

    train: Qrels
    dev: Qrels
    test: Qrels


def read_splits(folder: Path) -> Splits:
    """The judgments of `folder/qrels`: `train`, `dev` and `test`, each .tsv or .txt.

    What is missing is cut off what is there, by a hash of the query's id, so that a query stays
    where it is when others are added: without `test` the verdict is given by `dev`, without both
    by a fifth of `train`; without `dev` a part of `train` validates.
    """
    found = {path.name.split(".")[0]: path for path in sorted((folder / "qrels").glob("*.t*"))}
    if "train" not in found:
        raise SecondlookError(
            f"{folder / 'qrels'} has no train.tsv; `tune` learns from judged queries: put all you "
            "have there, and it holds some out for the verdict; --clicks and --expander make some"
        )
    train, dev, test = (
        read_qrels(found[name]) if name in found else {} for name in ("train", "dev", "test")
    )
    if not test:
        test, dev = dev, {}
    train = {query: grades for query, grades in train.items() if query not in {**dev, **test}}
    if not test:
        test, train = _cut(train, "test", len(train))
    if not dev:
        dev, train = _cut(train, "dev", _MOST_VALIDATED)
    for name, part in {"learn from": train, "validate on": dev, "judge by": test}.items():
        if not part:
            raise SecondlookError(f"{folder}: too few judged queries; none is left to {name}")
    return Splits(
        train, {query: grades for query, grades in dev.items() if query not in test}, test
    )


def add_judged(made: Path, judged: Path) -> None:
    """Put what people judged in the folder `judged`, if anything, beside what was `made`.

    Its `dev` and `test` then validate and give the verdict, as far as they are there; queries that
    were made and read like one of theirs are left out, so that none is learnt from and judged by.
    Called again it changes nothing.
    """
    found = {
        name: read_qrels(path)
        for path in sorted((judged / "qrels").glob("*.t*"))
        if (name := path.name.split(".")[0]) in ("dev", "test")
    }
    held = {query_id for qrels in found.values() for query_id in qrels}
    if not held:
        return
    asked = [query for query in read_queries(judged) if query.id in held]
    texts = {query.text.casefold() for query in asked}
    kept = [
        query
        for query in read_queries(made)
        if query.text.casefold() not in texts and query.id not in held
    ]
    own = {query.id for query in kept}
    train = read_qrels(made / "qrels" / "train.tsv")
    write_queries(made / "queries.jsonl", [*kept, *asked])
    write_qrels(made / "qrels" / "train.tsv", {one: train[one] for one in train if one in own})
    for name, qrels in found.items():
        write_qrels(made / "qrels" / f"{name}.tsv", qrels)


def _cut(qrels: Judged, name: str, most: int) -> tuple[Judged, Judged]:
    """About a fifth of the queries, at most so many, and the rest."""
    order = sorted(qrels, key=lambda query: blake2b(f"{name}\0{query}".encode()).digest())
    taken = set(order[: min(most, round(len(order) * _HELD_OUT))])
    return (
        {query: grades for query, grades in qrels.items() if query in taken},
        {query: grades for query, grades in qrels.items() if query not in taken},
    )
