"""Agreement of two scorers, worked out by hand."""

from __future__ import annotations

import pytest

from secondlook.errors import SecondlookError
from secondlook.evaluate.agreement import agreement


def test_the_same_order_on_any_scale_is_one():
    found = agreement([[3.0, 2.0, 1.0]], [[90.0, 20.0, 10.0]])
    assert (found.kendall, found.spearman, found.same_first, found.shared_top) == (1, 1, 1, 1)


def test_one_exchanged_pair_of_four_documents():
    """Of six pairs five agree: (5 - 1) / 6; ranks differ by 1 twice: 1 - 6·2 / (4·15)."""
    found = agreement([[4.0, 3.0, 2.0, 1.0]], [[3.0, 4.0, 2.0, 1.0]])
    assert found.kendall == pytest.approx(4 / 6)
    assert found.spearman == pytest.approx(0.8)
    assert found.same_first == 0


def test_the_mean_is_over_queries_and_level_scores_have_no_order():
    found = agreement([[2.0, 1.0], [2.0, 1.0], [5.0]], [[1.0, 2.0], [7.0, 7.0], [1.0]])
    assert found.per_query == (-1.0, 0.0)
    assert (found.kendall, found.queries) == (-0.5, 2)


def test_ten_of_more_documents_are_compared():
    wanted = [float(20 - at) for at in range(20)]
    own = [float(at) for at in range(20)]
    assert agreement([wanted], [own]).shared_top == 0
    assert agreement([wanted], [[*wanted[:5], *[0.0] * 15]]).shared_top == 1  # ties in their order


def test_without_an_order_there_is_nothing_to_agree_on():
    with pytest.raises(SecondlookError, match="two documents"):
        agreement([[1.0]], [[2.0]])
