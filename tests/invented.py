"""Training groups of random letters."""

from __future__ import annotations

import random

from secondlook.train.groups import Group
from secondlook.types import Document, Query


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
