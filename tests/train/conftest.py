"""Small rankers and small groups to train them on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tiny
from invented import invent
from secondlook.model.network import new_joint, new_warm
from secondlook.train.groups import write_groups
from secondlook.train.phase import TrainData

if TYPE_CHECKING:
    from pathlib import Path


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
