"""Small rankers and small groups to train them on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import tiny
from secondlook.model.network import new_joint, new_warm
from secondlook.train.groups import Group, write_groups
from secondlook.train.phase import TrainData
from secondlook.types import Document, Query

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.fixture
def base(tmp_path) -> Path:
    """A two-layer encoder."""
    return tiny.save(tiny.encoder(), tmp_path / "base")


@pytest.fixture
def joint(base):
    return new_joint(base)


@pytest.fixture
def warm(base):
    return new_warm(base)


@pytest.fixture
def data(tmp_path):
    """Twenty groups to learn, which are those to validate on too."""
    path = tmp_path / "groups.parquet"
    write_groups(path, invent(20, teacher=True), about={})
    return TrainData(tmp_path, (path,), path)
