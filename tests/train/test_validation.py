from __future__ import annotations

from dataclasses import replace
from math import log2

import numpy as np
import pytest

from secondlook.train.groups import Group
from secondlook.train.validation import Validation
from secondlook.types import Document, Query


class ByName:
    """Scores a document by the number it is named after."""

    def score(self, pairs):
        return np.array([float(document.id) for _, document in pairs], np.float32)


def group(name, labels, missed=()):
    documents = tuple(Document(str(at), "text") for at in range(len(labels)))
    return Group(Query(name, "q"), documents, labels, (0,) * len(labels), missed=missed)


def test_the_measure_counts_what_the_first_look_missed():
    """The last document is ranked first: found at rank 1, one more is not there at all."""
    found = Validation([group("a", (0, -1, 1), missed=(1,))], "nDCG@10")(ByName())
    assert found == pytest.approx(1 / (1 + 1 / log2(3)))


def test_grades_below_the_positives_count_as_the_measure_counts_them():
    """Ranked last first: the grade 1 at rank 1, the positive of grade 2 at rank 2."""
    graded = replace(group("a", (2, 0)), grades=(2, 1))
    best = 2 + 1 / log2(3)
    assert Validation([graded], "nDCG@10")(ByName()) == pytest.approx((1 + 2 / log2(3)) / best)


def test_it_is_the_mean_over_judged_queries():
    groups = [group("a", (1, 0)), group("b", (0, 1)), group("c", (-1, -1))]
    validation = Validation(groups, "RR@10")
    assert validation(ByName()) == pytest.approx((0.5 + 1) / 2)
    assert len(validation) == 4


def test_only_the_first_queries_where_a_limit_is_set():
    groups = [group("a", (1, 0)), group("b", (0, 1))]
    assert Validation(groups, "RR@10", limit=1)(ByName()) == pytest.approx(0.5)


class Counting(ByName):
    scored = 0

    def score(self, pairs):
        self.scored += len(pairs)
        return super().score(pairs)


def test_where_no_candidate_is_relevant_none_is_scored():
    """Its order is worth nothing whatever it is; what the first stage missed still counts."""
    groups = [group("a", (0, -1), missed=(1,)), group("b", (1, 0)), group("c", (0, 0))]
    validation, ranker = Validation(groups, "nDCG@10"), Counting()
    assert validation.per_query(ranker) == {"a": 0, "b": pytest.approx(1 / log2(3)), "c": 0}
    assert ranker.scored == len(validation) == 2
    assert len(validation.rankings(ranker)) == 3, "a run has all"
    assert ranker.scored == 8
    assert validation.first(5).per_query(ranker) == {"b": pytest.approx(1 / log2(3))}
