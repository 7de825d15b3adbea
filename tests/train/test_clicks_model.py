"""Clicks simulated from a known curve of attention: the curve and the order are found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from secondlook.data.clicks import Impression
from secondlook.errors import SecondlookError
from secondlook.train.clicks import (
    ClickSettings,
    Examination,
    Tally,
    attraction,
    examination,
    judge,
)

DEPTH = 10


def simulated(seen, *, skill, queries=80, sessions=60, noise=0.5, seed=0):
    """A log, and how good each document really is.

    A document has a habitual place, which says how good it is as far as the ranker has `skill`.
    """
    rng = np.random.default_rng(seed)
    liked, log = {}, []
    for query in range(queries):
        good = rng.beta(0.5, 1.5, DEPTH)
        known = skill * (good - good.mean()) / good.std() + (1 - skill) * rng.normal(size=DEPTH)
        liked |= {(f"query {query}", f"d{query}-{n}"): good[n] for n in range(DEPTH)}
        for _ in range(sessions):
            order = np.argsort(-(known + noise * rng.normal(size=DEPTH)))
            clicked = rng.random(DEPTH) < seen(np.arange(1, DEPTH + 1)) * good[order]
            names = [f"d{query}-{n}" for n in order]
            taken = frozenset(name for name, click in zip(names, clicked, strict=True) if click)
            log.append(Impression(f"query {query}", tuple(names), taken))
    return log, liked


def truth(tally, liked):
    text = {query.id: query.text for query in tally.queries}
    return np.array([liked[text[query_id], doc_id] for query_id, doc_id in tally.pairs])


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 1.5])
def test_the_curve_is_found_again_to_a_twentieth(eta):
    log, _ = simulated(Examination(eta), skill=0.5)
    found = examination(Tally.of(log))
    assert found.eta == pytest.approx(eta, abs=0.05)
    ranks = np.arange(1, DEPTH + 1)
    assert found(ranks) == pytest.approx(Examination(eta)(ranks), abs=0.05)
    assert found.error < 0.06


def test_a_ranker_that_is_right_is_not_taken_for_attention():
    """Few showings of each document, the good ones on top nearly always."""
    log, _ = simulated(Examination(0.7), skill=0.9, queries=600, sessions=6)
    tally = Tally.of(log)
    assert examination(tally).eta == pytest.approx(0.7, abs=0.1)
    by_rank = np.bincount(tally.rank, tally.clicked) / np.bincount(tally.rank, tally.shown).clip(1)
    assert by_rank[8] / by_rank[1] < 0.5 * Examination(0.7)(np.array([8]))[0]


@pytest.mark.parametrize(
    "seen",
    [Examination(1.0), lambda rank: 0.75 ** (rank - 1), lambda rank: np.where(rank <= 4, 1, 0.3)],
    ids=["1/rank", "geometric", "a fold"],
)
def test_where_ranks_mislead_worth_is_found_better_than_by_click_rates(seen):
    """Also where attention does not fall as the model has it."""
    log, liked = simulated(seen, skill=0.0)
    tally = Tally.of(log)
    corrected = attraction(tally, examination(tally))
    raw = tally.clicks / tally.sum(tally.shown)
    real = truth(tally, liked)
    assert kendalltau(corrected, real).statistic > kendalltau(raw, real).statistic + 0.04


def test_judgments_are_what_was_seen_often_enough():
    log = [Impression("Cape  Fear", ("a", "b", "c", "d"), frozenset("b"))] * 6
    log += [Impression("cape fear", ("b", "a", "c", "d"), frozenset("b"))] * 6
    made = judge(Tally.of(log), ClickSettings(eta=1.0, looks=4.0, relevant=0.5))
    (query,) = made.queries
    assert query.text == "Cape Fear"
    # a was seen 6 + 3 times and b as often; c four times; d three times, which is too few
    assert made.qrels == {query.id: {"a": 0, "b": 1, "c": 0}}
    assert "12 impressions" in made.origin
    assert "k^-1.00" in made.origin


def test_a_lucky_click_far_down_is_no_judgment():
    log = [Impression("q", tuple("abcdefghij"), frozenset("aj"))]
    log += [Impression("q", tuple("abcdefghij"), frozenset("a"))] * 3
    made = judge(Tally.of(log), ClickSettings(eta=1.0))
    assert [doc for grades in made.qrels.values() for doc, grade in grades.items() if grade] == [
        "a"
    ]


def test_a_log_whose_documents_never_move_cannot_tell():
    log = [Impression("q", ("a", "b"), frozenset("a"))] * 500
    with pytest.raises(SecondlookError, match="`eta` 1"):
        examination(Tally.of(log))
    assert judge(Tally.of(log), ClickSettings(eta=1.0)).qrels


@pytest.mark.parametrize("log", [[], [Impression("q", (), frozenset())]])
def test_a_log_that_shows_nothing_says_so(log):
    with pytest.raises(SecondlookError, match="`eta` 1"):
        judge(Tally.of(log), ClickSettings())
    with pytest.raises(SecondlookError, match="gather more clicks"):
        judge(Tally.of(log), ClickSettings(eta=1.0))


@given(st.permutations(simulated(Examination(1.0), skill=0.5, queries=4, sessions=20)[0]))
def test_the_order_of_the_log_does_not_matter(log):
    one = judge(Tally.of(log), ClickSettings(eta=1.0))
    other = judge(Tally.of(reversed(log)), ClickSettings(eta=1.0))
    assert one.qrels == other.qrels
