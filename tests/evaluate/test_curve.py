"""A plot in a file."""

import time

import pytest

from secondlook.errors import WrongArgument
from secondlook.evaluate.curve import plotted


@pytest.mark.parametrize("name", ["curve.svg", "curve.png"])
def test_the_same_lines_make_the_same_bytes(tmp_path, name):
    made = []
    for turn in ("first", "second"):
        path = tmp_path / turn / name
        path.parent.mkdir()
        with plotted(path, "depth", "nDCG@10") as axes:
            axes.plot([1, 2, 3], [0.1, 0.2, 0.3], marker="o", label="a ranker")
        made.append(path.read_bytes())
        time.sleep(0.01)  # a date in the file would differ
    assert made[0] == made[1]


def test_a_picture_of_another_kind_is_refused_before_anything_is_drawn(tmp_path):
    with (
        pytest.raises(WrongArgument, match=r"end it in \.png or \.svg"),
        plotted(tmp_path / "curve.xyz", "depth", "nDCG@10"),
    ):
        pytest.fail("something was drawn")
    assert not list(tmp_path.iterdir())
