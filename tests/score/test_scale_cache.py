"""A scale by the reference pairs is fitted once for a ranker, and again for any other."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook.score.default_scale import fit_scale, reference_pairs, training_pairs
from secondlook.types import Document, Query


class Rising:
    """Scores pairs by their place, roughly, and counts what it has scored."""

    def __init__(self, factor=1.0):
        self.factor, self.scored = factor, 0

    def score(self, pairs):
        self.scored += len(pairs)
        rng = np.random.default_rng(3)
        noise = rng.normal(size=len(pairs))
        return (self.factor * (np.arange(len(pairs)) + noise)).astype(np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SECONDLOOK_CACHE", str(tmp_path))
    return tmp_path / "scales"


def test_the_second_time_only_a_few_pairs_are_scored():
    pairs = reference_pairs()
    first, second = Rising(), Rising()
    assert fit_scale(first, pairs) == fit_scale(second, pairs)
    assert second.scored < 0.1 * first.scored


def test_another_ranker_or_other_pairs_have_a_scale_of_their_own(cache):
    fitted = [
        fit_scale(Rising(), reference_pairs()),
        fit_scale(Rising(2.0), reference_pairs()),
        fit_scale(Rising(), reference_pairs(every=2)),
    ]
    assert len({scale.slope for scale in fitted}) == 3
    assert len(list(cache.iterdir())) == 3


def test_pairs_of_the_user_are_not_kept(cache):
    own = [
        (Query(str(n), f"query {n}"), Document(f"d{n}", f"text {n}"), {f"d{n}"}) for n in range(20)
    ]
    fit_scale(Rising(), training_pairs(own))
    assert not cache.exists()


@pytest.mark.parametrize("text", ["", "{}", "half of i"])
def test_a_damaged_file_is_fitted_anew(cache, text):
    pairs = reference_pairs()
    expected = fit_scale(Rising(), pairs)
    (kept,) = cache.iterdir()
    kept.write_text(text)
    assert fit_scale(Rising(), pairs) == expected
    assert kept.read_text() != text


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SECONDLOOK_CACHE", str(tmp_path / "file"))
    assert fit_scale(Rising(), reference_pairs()).slope
