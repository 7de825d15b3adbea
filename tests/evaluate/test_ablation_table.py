import numpy as np
import pytest

from secondlook.evaluate.ablation import ablation, markdown

QUERIES = [f"q{number}" for number in range(12)]


def values(level):
    return dict.fromkeys(QUERIES, level)


def test_means_deviations_and_tests_worked_by_hand():
    figures = {"whole": [values(0.6), values(0.8)], "whole − STRM": [values(0.5), values(0.5)]}
    whole, without = ablation(figures, np.random.default_rng(0))
    assert (whole.mean, whole.seeds, whole.delta, whole.adjusted) == (
        pytest.approx(0.7),
        2,
        0,
        None,
    )
    assert whole.deviation == pytest.approx(0.1 * np.sqrt(2))
    assert without.delta == pytest.approx(-0.2)
    assert without.adjusted == pytest.approx(2 / 2**12)  # all twelve lose: two patterns of 4096


def test_one_seed_has_no_deviation():
    [whole] = ablation({"whole": [values(0.6)]}, np.random.default_rng(0))
    assert whole.deviation is None


def test_the_table_reads():
    figures = {"whole": [values(0.6), values(0.8)], "plain": [values(0.5), values(0.5)]}
    shown = markdown(ablation(figures, np.random.default_rng(0)), "RR@10").splitlines()
    assert shown[0] == "| recipe | RR@10 | seeds | from the whole | p (Holm) |"
    assert shown[2] == "| whole | 0.7000 ± 0.1414 | 2 |  |  |"
    assert shown[3] == "| plain | 0.5000 ± 0.0000 | 2 | -0.2000 | 0.000 |"
