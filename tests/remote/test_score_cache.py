"""Scores on disk: shared by threads and processes, bounded, and never half written."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from secondlook.errors import Unwritable
from secondlook.remote.score_cache import ScoreCache, cache_file, digest


def test_scores_come_back_exactly_and_the_first_one_stays(tmp_path):
    keys = [digest("m", "q", str(n)) for n in range(1200)]
    ScoreCache(tmp_path / "a" / "s.sqlite").put([(key, n / 7) for n, key in enumerate(keys)])
    again = ScoreCache(tmp_path / "a" / "s.sqlite")
    again.put([(keys[3], 99.0)])
    found = again.get([*keys, digest("other")])
    assert found == {key: n / 7 for n, key in enumerate(keys)}


def test_no_two_lists_of_texts_have_one_digest():
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("a", "b", "c"), ("\ud800",)]
    assert len({digest(*some) for some in parts}) == len(parts)


def test_threads_may_share_it(tmp_path):
    cache = ScoreCache(tmp_path / "s.sqlite")

    def work(start):
        keys = [digest(str(start + n)) for n in range(50)]
        cache.put([(key, 1.0) for key in keys])
        return len(cache.get(keys))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(0, 2000, 50))) == {50}


def test_the_oldest_are_dropped_beyond_the_bound(tmp_path):
    cache = ScoreCache(tmp_path / "s.sqlite", most=100)
    keys = [digest(str(n)) for n in range(150)]
    for key in keys:
        cache.put([(key, 0.5)])
    found = cache.get(keys)
    assert len(found) <= 100
    assert keys[-1] in found
    assert keys[0] not in found


def test_what_cannot_be_kept_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="SECONDLOOK_CACHE"):
        ScoreCache(tmp_path / "file" / "s.sqlite")
    (tmp_path / "s.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(Unwritable, match="cache=off"):
        ScoreCache(tmp_path / "s.sqlite")


def test_a_failed_write_leaves_what_was_there(tmp_path):
    cache = ScoreCache(tmp_path / "s.sqlite")
    cache.put([(b"a", 1.0)])
    with pytest.raises(Unwritable):
        cache.put([(b"b", 2.0), (b"c", sqlite3)])
    assert cache.get([b"a", b"b"]) == {b"a": 1.0}
    cache.put([(b"b", 2.0)])
    assert cache.get([b"b"]) == {b"b": 2.0}


def test_where_it_is():
    assert cache_file({"SECONDLOOK_CACHE": "/c"}) == Path("/c/remote-scores.sqlite")
    assert cache_file({"XDG_CACHE_HOME": "/x"}) == Path("/x/secondlook/remote-scores.sqlite")
    assert cache_file({}) == Path.home() / ".cache/secondlook/remote-scores.sqlite"
