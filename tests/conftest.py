"""Where the tests find real data, and what they do without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
# Programs that tests start see the same code as the tests, installed or not.
os.environ["PYTHONPATH"] = str(REPOSITORY / "src")
SHARED = Path(os.environ.get("SECONDLOOK_SHARED", REPOSITORY.parent / "shared"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real ranking data; a test that needs it is skipped where it is absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"no ranking data at {folder}; set SECONDLOOK_SHARED to the folder above it")
    return folder


@pytest.fixture(scope="session")
def shared_weights() -> Path:
    """The folder of real model weights; likewise."""
    folder = SHARED / "weights"
    if not folder.is_dir():
        pytest.skip(f"no model weights at {folder}; set SECONDLOOK_SHARED to the folder above it")
    return folder
