"""What every scorer promises: the fake and a remote one as much as torch and the exports."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from remote_service import Service
from remote_service import ranker as remote_ranker
from secondlook.score.export_folder import FASTEST_FIRST
from secondlook.score.overlap import WordOverlap
from secondlook.score.ranker import Ranker
from secondlook.types import Document, Query, Scorer

QUERY = Query("q", "where is the deep sea fish")
TEXTS = [
    "the deep sea",
    "",
    "fish " * 400,
    "bogue is a fish in the river of insouci",
    "Cape Fear, a river: tides in; tides out!",
    "what who where " * 7,
    "a",
    "the fish is in the sea",
]
PAIRS = [(QUERY, Document(str(place), text)) for place, text in enumerate(TEXTS)]
ROUNDING = {"fp32": 1e-4, "bf16": 0.02, "int8": 0.02}
"""What the batch a pair stands in may change, as a share of how far scores lie apart."""


KINDS = [
    (form, *kind) for form in ("joint", "warm") for kind in [("torch", "fp32"), *FASTEST_FIRST]
]


@pytest.fixture(scope="module", params=[("fake",), ("remote",), *KINDS], ids=" ".join)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def scorer(kind, exported, tmp_path_factory):
    if kind == ("fake",):
        return WordOverlap()
    if kind == ("remote",):
        return remote_ranker(Service(), tmp_path_factory.mktemp("cache"))
    form, backend, precision = kind
    return Ranker.load(exported(form), backend=backend, precision=precision)


@pytest.fixture(scope="module")
def rounding(kind, scorer):
    return (
        0 if kind in (("fake",), ("remote",)) else ROUNDING[kind[2]] * np.ptp(scorer.score(PAIRS))
    )


def test_it_is_a_scorer(scorer):
    assert isinstance(scorer, Scorer)


def test_scores_are_finite_and_tell_documents_apart(scorer):
    scores = scorer.score(PAIRS)
    assert scores.shape == (len(PAIRS),)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert len(set(scores.tolist())) > 3


def test_the_same_pairs_have_the_same_scores_again(scorer):
    np.testing.assert_array_equal(scorer.score(PAIRS), scorer.score(PAIRS))


def test_scores_come_back_in_the_callers_order(scorer, rounding):
    order = np.random.default_rng(0).permutation(len(PAIRS))
    shuffled = scorer.score([PAIRS[place] for place in order])
    np.testing.assert_allclose(shuffled, scorer.score(PAIRS)[order], atol=rounding)


def test_a_pairs_score_does_not_depend_on_its_neighbours(scorer, rounding):
    alone = np.concatenate([scorer.score([pair]) for pair in PAIRS])
    np.testing.assert_allclose(alone, scorer.score(PAIRS), atol=rounding)
    many = scorer.score(PAIRS * 40)
    np.testing.assert_allclose(many, np.tile(alone, 40), atol=rounding)


def test_no_pairs_have_no_scores(scorer):
    scores = scorer.score([])
    assert (scores.shape, scores.dtype) == ((0,), np.float32)


def test_threads_may_share_it(scorer, rounding):
    expected = scorer.score(PAIRS)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(scorer.score, [PAIRS] * 12):
            np.testing.assert_allclose(scores, expected, atol=rounding)
