"""The parts of the report that need no file."""

import pytest

from secondlook.evaluate.compare import compare
from secondlook.evaluate.comparison import Difference
from secondlook.evaluate.report_page import stories
from secondlook.types import Hit, Query, Ranking

QRELS = {f"q{n}": {f"good{n}": 1, f"bad{n}": 0} for n in range(12)}


def run(good_first):
    """The good document stands first for these queries, second for the others."""
    return [
        Ranking.of(f"q{n}", [Hit(f"good{n}", float(n in good_first)), Hit(f"bad{n}", 0.5)])
        for n in range(12)
    ]


@pytest.fixture
def looked_up(monkeypatch):
    """How often the differences of all queries were computed."""
    times, deltas = [], Difference.deltas.fget
    counted = property(lambda self: times.append(1) or deltas(self))
    monkeypatch.setattr(Difference, "deltas", counted)
    return times


def test_stories_begin_with_the_most_helped_and_compute_the_differences_once(looked_up):
    base, new = run({0, 1}), run({1, 2, 3})
    first = compare(QRELS, ("base", base), [("new", new)], ["RR@10"]).runs[0].differences[0]
    told = stories(first, QRELS, [Query("q0", "the hurt one")], base, new, {})
    assert [one.query for one in told[:3]] == ["q2", "q3", "q1"]
    assert told[-1].query == "the hurt one"
    assert (told[-1].base, told[-1].new) == (1.0, 0.5)
    assert len(looked_up) == 1
