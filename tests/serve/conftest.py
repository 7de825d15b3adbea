"""Tiny rankers, made once for all tests of a session."""

import pytest

import tiny
from secondlook import Ranker
from served import listening, serving


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    return tiny.save(tiny.classifier(), tmp_path_factory.mktemp("served") / "tiny")


@pytest.fixture(scope="session")
def ranker(tiny_folder):
    return Ranker.load(tiny_folder, device="cpu")


@pytest.fixture(scope="module")
def url(ranker):
    """A server with nothing special."""
    with listening(serving(ranker)) as url:
        yield url
