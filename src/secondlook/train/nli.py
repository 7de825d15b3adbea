"""Natural-language inference as training groups: what follows from a premise is its positive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondlook.data.nli import read_nli
from secondlook.train.groups import Group, write_groups
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from secondlook.data.nli import NliPair

_FOLLOWS, _DOES_NOT = 1, 0


def nli_groups(pairs: Iterable[NliPair]) -> Iterator[Group]:
    """A group for each premise, whose hypotheses are its documents; all pairs are held.

    Entailment is the label 1, the two other classes are 0, so that a pointwise phase learns
    whether a hypothesis follows. Premises with one kind of hypotheses only are left out by it.
    """
    by_premise: dict[str, dict[str, int]] = {}
    for pair in pairs:
        label = _FOLLOWS if pair.label == "entailment" else _DOES_NOT
        by_premise.setdefault(pair.premise, {})[pair.hypothesis] = label
    for number, (premise, hypotheses) in enumerate(by_premise.items()):
        documents = tuple(Document(f"{number}-{at}", text) for at, text in enumerate(hypotheses))
        labels = tuple(hypotheses.values())
        yield Group(Query(str(number), premise), documents, labels, (0,) * len(documents))


def write_nli_groups(source: Path, output: Path) -> int:
    """Read MNLI or SNLI, and write a group file; gives how many groups there are."""
    return write_groups(output, nli_groups(read_nli(source)), about={"nli": source.name})
