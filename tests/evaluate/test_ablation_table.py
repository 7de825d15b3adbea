import numpy as np
import pytest

from secondlook.evaluate.ablation import Part, ablation, contrast_table, contrasts, markdown

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


def test_a_contrast_takes_the_seeds_that_both_have():
    figures = {
        "plain": {1: values(0.5), 2: values(0.6), 3: values(0.9)},
        "plain + STRM": {1: values(0.6), 2: values(0.8)},
    }
    [strm] = contrasts(figures, [Part("STRM", "plain + STRM", "plain")], np.random.default_rng(0))
    assert strm.by_seed == pytest.approx((0.1, 0.2))
    assert strm.base == pytest.approx(0.55)
    assert (strm.delta, strm.low, strm.high) == pytest.approx((0.15, 0.15, 0.15))  # all alike
    assert strm.p == pytest.approx(2 / 2**12)


def test_a_part_is_seen_on_the_queries_it_is_meant_for():
    split = QUERIES[:4]
    better = {query: 0.9 if query in split else 0.4 for query in QUERIES}
    figures = {"plain": {1: values(0.5)}, "plain + STRM": {1: better}}
    parts = [
        Part("split words", "plain + STRM", "plain", split),
        Part("others", "plain + STRM", "plain", set(QUERIES) - set(split)),
        Part("no query", "plain + STRM", "plain", ()),
        Part("not trained yet", "plain + markers", "plain"),
    ]
    meant, others = contrasts(figures, parts, np.random.default_rng(0))
    assert (meant.queries, others.queries) == (4, 8)
    assert meant.delta == pytest.approx(0.4)
    assert others.delta == pytest.approx(-0.1)
    assert meant.adjusted == meant.p == pytest.approx(2 / 2**4)  # the larger of two
    assert others.adjusted == pytest.approx(2 * others.p)
    assert contrast_table([others], "nDCG@10").splitlines()[2] == (
        "| others | 8 | 0.5000 | -0.1000 | -0.1000 to -0.1000 | 0.016 | -0.1000 |  |  |"
    )
