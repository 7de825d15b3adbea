"""Data that somebody made up: training groups of random letters, and a corpus of the sea."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from secondlook.data import write_corpus, write_qrels, write_queries
from secondlook.train.groups import Group
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from pathlib import Path

_WORDS = "cape fear river tide fish".split()
DEEP_SEA = [
    Document(f"d{n}", f"the {one} and {other} of the deep sea", "bogue" if n % 2 else "")
    for n, (one, other) in enumerate((one, other) for one in _WORDS for other in _WORDS)
]


def write_deep_sea(folder: Path) -> list[Path]:
    """The corpus, a query for each document, and judgments: the files, in this order."""
    files = [folder / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    write_corpus(files[0], DEEP_SEA)
    queries = [Query(f"q{n}", f"what is {doc.text.split()[1]}") for n, doc in enumerate(DEEP_SEA)]
    write_queries(files[1], queries)
    write_qrels(files[2], {f"q{n}": {f"d{n}": 1} for n in range(len(DEEP_SEA))})
    return files


def invent(count: int, *, candidates: int = 6, seed: int = 0, teacher: bool = False) -> list[Group]:
    """Queries and documents of random letters, the first document of each relevant."""
    draw = random.Random(seed)

    def text(words: int) -> str:
        return " ".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(words))

    groups = []
    for number in range(count):
        documents = tuple(
            Document(f"d{number}-{at}", text(draw.randint(3, 9))) for at in range(candidates)
        )
        labels = (1, *[-1] * (candidates - 1))
        scores = (3.0, *[draw.uniform(-1, 1) for _ in range(candidates - 1)])
        groups.append(
            Group(
                Query(f"q{number}", text(3)),
                documents,
                labels,
                tuple(range(1, candidates + 1)),
                scores if teacher else None,
            )
        )
    return groups
