"""Tiny rankers, made once for all tests of a session, and what a server logs."""

import io
import json
import logging

import pytest

import tiny
from secondlook import Ranker
from secondlook.serve.logs import JsonLines
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


@pytest.fixture
def log():
    """The lines that the server has logged by now."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("secondlook.serve")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(before)
