"""How time is shared out, and kept to."""

from __future__ import annotations

from time import monotonic

import pytest

from invented import invent
from secondlook.progress import Unwatched
from secondlook.train.budget import Sizes, affordable, most_queries, share_out
from secondlook.train.choice import whole_recipe
from secondlook.train.groups import write_groups
from secondlook.train.recipe import DataSettings
from secondlook.train.run import job, train

ASKED = Sizes(depth=100, dev=500, test=300)


@pytest.mark.parametrize(
    ("pairs", "sizes"),
    [
        (1e9, Sizes(100, 200, 300)),  # more validation queries would only cost time
        (90_000, Sizes(100, 150, 300)),
        (40_000, Sizes(50, 100, 300)),
        (15_000, Sizes(20, 75, 300)),
        (10_000, Sizes(20, 50, 200)),
        (0, Sizes(20, 50, 100)),  # less would say nothing
    ],
)
def test_what_is_re_ranked_fits_into_the_time_down_to_what_still_says_something(pairs, sizes):
    found = affordable(ASKED, pairs)
    assert found == sizes
    assert found.pairs <= pairs or found == Sizes(20, 50, 100)


def test_small_sets_are_not_cut_and_never_grow():
    small = Sizes(depth=10, dev=5, test=6)
    assert affordable(small, 0) == affordable(small, 1e9) == small


def test_time_that_is_too_short_to_learn_is_for_measuring_the_base():
    asked = Sizes(depth=20, dev=100, test=300)
    assert share_out(asked, 800, 3600, 10) == asked
    assert share_out(asked, 800, 800, 10) == Sizes(20, 100, 300, rankers=1)
    few = Sizes(depth=20, dev=5, test=300)
    assert share_out(few, 8, 600, 10).rankers == 2  # eight queries are learnt from in no time


def test_no_more_queries_are_mined_than_can_be_seen():
    assert most_queries(600, 50) == 5000
    assert most_queries(0.1, 1) == 1


class Heard(Unwatched):
    def __init__(self):
        self.said = []

    def say(self, message):
        self.said.append(message)


def test_training_ends_at_its_deadline_with_the_best_so_far(tmp_path, base):
    for name in ("train.parquet", "dev.parquet"):
        write_groups(tmp_path / name, invent(24), about={})
    data = DataSettings(train=("train.parquet",), validation="dev.parquet")
    recipe = whole_recipe(str(base), data)
    heard = Heard()
    work = job(recipe, tmp_path, tmp_path / "ranker", base=str(base), watch=heard, device="cpu")
    late = type(work)(work.recipe, work.output, work.base, work.data, heard, "cpu", (), monotonic())
    listwise = train(late).lineage.phases[-1]
    assert listwise.metrics["steps"] == 1
    assert "nDCG@10 at the start" in listwise.metrics
    assert "time is up: training ends after 1 of 9 steps" in "\n".join(heard.said)
