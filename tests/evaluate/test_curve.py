"""A plot in a file."""

import time

import pytest

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
