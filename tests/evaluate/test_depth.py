import pytest

from secondlook.evaluate.depth import depth_curve, same_hits
from secondlook.types import Hit, Ranking

QRELS = {"q": {"c": 1, "a": 0}}
FIRST = [Ranking.of("q", [Hit(d, s) for d, s in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)])]


def test_the_second_look_reaches_what_its_depth_lets_it_see():
    second = [Ranking.of("q", [Hit(d, s) for d, s in zip("cabd", (4, 3, 2, 1), strict=True)])]
    curve = depth_curve(QRELS, FIRST, second, "RR@10")
    assert [one.depth for one in curve] == [0, 1, 2, 4]
    assert [one.reached for one in curve] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0])
    assert [one.ceiling for one in curve] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0])


def test_a_bad_second_look_stays_below_the_ceiling():
    second = [Ranking.of("q", [Hit(d, s) for d, s in zip("abdc", (4, 3, 2, 1), strict=True)])]
    last = depth_curve(QRELS, FIRST, second, "RR@10")[-1]
    assert (last.reached, last.ceiling) == (0.25, 1.0)


def test_a_run_that_is_no_reranking_shows_by_its_hits():
    other = [Ranking.of("q", [Hit("a", 2.0), Hit("new", 1.0)])]
    assert same_hits(FIRST, FIRST) == 1.0
    assert same_hits(FIRST, other) == 0.5
