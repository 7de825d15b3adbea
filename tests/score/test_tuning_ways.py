"""Which pooling and fusion are found, and that a ranker then ranks so."""

import numpy as np
import pytest

from secondlook.encode.settings import WindowSettings
from secondlook.errors import MalformedInput, SecondlookError
from secondlook.rank import Fusion
from secondlook.score.fusion_choice import Way, choose, read_looks, tune, ways
from secondlook.score.raw import windows_of
from secondlook.types import Hit, Ranking

WINDOWS = WindowSettings(length=10, stride=10)


def ranking(query_id, **scores):
    return Ranking.of(query_id, [Hit(doc_id, score) for doc_id, score in scores.items()])


def looks(queries, first, second, *, windows=False):
    names = [f"q{number}" for number in range(queries)]
    return read_looks(
        [first(name) for name in names], [second(name) for name in names], windows=windows
    )


def test_hits_that_the_second_look_did_not_see_are_left_out():
    both = read_looks(
        [ranking("q", a=3.0, b=2.0, c=1.0)], [ranking("q", c=9.0, a=8.0)], windows=False
    )
    assert both.first == (ranking("q", a=3.0, c=1.0),)
    assert both.second.tolist() == [8.0, 9.0]


def test_a_second_look_at_another_run_is_refused():
    with pytest.raises(SecondlookError, match="run that was re-ranked"):
        read_looks([ranking("q", a=3.0)], [ranking("q", b=1.0)], windows=False)


def test_windows_come_back_in_the_documents_order_whatever_its_name():
    run = Ranking.of("q", [Hit("a#b#1", 5.0), Hit("a#b#0", 1.0), Hit("c#10", 2.0), Hit("c#9", 7.0)])
    found = windows_of(run)
    assert {doc_id: own.tolist() for doc_id, own in found.items()} == {
        "a#b": [1.0, 5.0],
        "c": [7.0, 2.0],
    }


def test_a_run_of_whole_documents_is_no_run_of_windows():
    with pytest.raises(MalformedInput, match="rerank --raw"):
        windows_of(ranking("q", a=1.0))


def test_two_looks_that_are_each_half_right_are_mixed():
    # The first look puts one wrong document on top, the second another: only both know.
    both = looks(
        20,
        lambda name: ranking(name, wrong=10.0, right=9.0, other=0.0),
        lambda name: ranking(name, other=10.0, right=9.0, wrong=0.0),
    )
    qrels = {f"q{number}": {"right": 1} for number in range(20)}
    found = tune(both, qrels, ways(None), "RR@10", folds=5, seed=0)
    best, tuned = found.among(lambda _: True)
    assert best.fusion is not None
    assert 0 < best.fusion.weight < 1
    assert tuned.held_out.tolist() == [1.0] * 20
    assert found.among(lambda way: way.simple)[1].held_out.tolist() == [0.5] * 20


def test_judged_queries_that_were_never_searched_do_not_count():
    both = looks(
        20,
        lambda name: ranking(name, wrong=10.0, right=9.0),
        lambda name: ranking(name, right=10.0, wrong=9.0),
    )
    qrels = {f"q{number}": {"right": 1} for number in range(100)}
    tuned = tune(both, qrels, ways(None), "RR@10", folds=5, seed=0).best()
    assert (tuned.queries, tuned.left_out) == (20, 80)
    assert (tuned.first, tuned.ranker) == (0.5, 1.0)


def test_one_judged_query_is_too_few_to_choose_by():
    both = looks(2, lambda name: ranking(name, right=1.0), lambda name: ranking(name, right=2.0))
    with pytest.raises(SecondlookError, match="takes at least two"):
        tune(both, {"q0": {"right": 1}}, ways(None), "RR@10", folds=5, seed=0)


def test_a_ranker_that_is_right_alone_stays_alone():
    both = looks(
        10,
        lambda name: ranking(name, wrong=2.0, right=1.0),
        lambda name: ranking(name, wrong=1.0, right=2.0),
    )
    qrels = {f"q{number}": {"right": 1} for number in range(10)}
    best, _ = tune(both, qrels, ways(None), "RR@10", folds=5, seed=0).among(lambda _: True)
    assert best == Way(None, None)


def curve(best, noise, queries, seed):
    """Values of all ways on one scale: a parabola over the weight for each query, with noise."""
    rng, tried = np.random.default_rng(seed), ways(None, ["min-max"])
    weights = np.array([way.weight for way in tried])
    tops = best + noise * rng.standard_normal(queries)
    return tried, 0.8 - (weights[:, None] - tops) ** 2


def test_a_weight_of_few_queries_is_near_that_of_many():
    """Nearer than the best weight of those queries, which is the one that luck favours."""

    def error(pick):
        found = []
        for seed in range(40):
            tried, values = curve(0.3, 0.0, 30, seed)
            values = values + 0.2 * np.random.default_rng(seed).standard_normal(values.shape)
            found.append(abs(tried[pick(tried, values)].weight - 0.3))
        return np.mean(found)

    bagged = error(lambda tried, values: choose(tried, values, seed=0))
    assert bagged < 0.8 * error(lambda _, values: values.mean(axis=1).argmax())


@pytest.mark.parametrize(("top", "weight"), [(-0.5, 0.0), (1.5, 1.0), (0.5, 0.5)])
def test_where_a_look_is_best_alone_it_stays_alone(top, weight):
    tried, values = curve(top, 0.01, 50, seed=1)
    assert tried[choose(tried, values, seed=0)].weight == weight


def test_the_same_queries_choose_the_same_way():
    tried, values = curve(0.4, 0.3, 25, seed=2)
    assert len({choose(tried, values, seed=3) for _ in range(3)}) == 1


def test_the_pooling_that_suits_the_documents_is_found():
    # Relevant documents answer in two windows, the others in one, and that one better.
    def second(name):
        scores = {"right#0": 0.8, "right#1": 0.8, "right#2": 0.0}
        scores |= {"wrong#0": 0.9, "wrong#1": 0.0, "wrong#2": 0.0}
        return Ranking.of(name, [Hit(window, score) for window, score in scores.items()])

    both = looks(10, lambda name: ranking(name, wrong=1.0, right=1.0), second, windows=True)
    qrels = {f"q{number}": {"right": 1} for number in range(10)}
    found = tune(both, qrels, ways(WINDOWS), "RR@10", folds=5, seed=0)
    best, tuned = found.among(lambda _: True)
    assert best.pooling is not None
    assert best.pooling.pooling in {"mean", "top"}
    assert best.fusion is None
    assert tuned.held_out.tolist() == [1.0] * 10


def test_every_way_is_one_that_a_checkpoint_can_hold():
    for way in ways(WINDOWS):
        assert way.pooling is not None
        assert WindowSettings.model_validate(way.pooling.model_dump()) == way.pooling
        assert way.fusion is None or isinstance(way.fusion, Fusion)
    assert len({way.pooling for way in ways(WINDOWS)}) == 15
    assert np.isclose([way.fusion.weight for way in ways(None) if way.fusion], 0).sum() == 0
