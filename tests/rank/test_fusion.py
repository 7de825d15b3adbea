import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook.rank import Fusion, fuse_rankings, second_look
from secondlook.rank.fusion import BothScores, fuse
from secondlook.types import Hit, Ranking

SCALES = ["min-max", "z", "ranks"]
FIRST = Ranking.of("q", [Hit("a", 12.0), Hit("b", 8.0), Hit("c", 4.0)])


def ids(ranking):
    return [hit.doc_id for hit in ranking.hits]


def test_without_a_fusion_the_second_look_decides_alone():
    made = second_look(FIRST, [-1.0, 2.0, 0.5])
    assert made == Ranking("q", (Hit("b", 2.0), Hit("c", 0.5), Hit("a", -1.0)))


def test_min_max_by_hand():
    # the first look on its scale: 1, .5, 0; the second: 0, 1, .5
    made = second_look(FIRST, [-1.0, 2.0, 0.5], Fusion(0.25))
    scores = {hit.doc_id: hit.score for hit in made.hits}
    assert scores == pytest.approx({"b": 0.875, "c": 0.375, "a": 0.25})
    assert ids(made) == ["b", "c", "a"]


def test_raw_scores_are_added_as_they_are_as_ccnu_does():
    assert fuse([10.0, 4.0], [1.0, 2.0], Fusion(0.8, "raw")).tolist() == pytest.approx([8.2, 3.6])


def test_z_by_hand():
    spread = np.sqrt(2 / 3)
    assert fuse([3, 2, 1], [1, 2, 3], Fusion(0.75, "z")) == pytest.approx(
        [0.5 / spread, 0, -0.5 / spread]
    )


def test_equal_ranks_weights_are_reciprocal_rank_fusion():
    fused = fuse([9, 7, 1], [0.1, 0.9, 0.5], Fusion(0.5, "ranks"))
    assert 2 * fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


@pytest.mark.parametrize("scale", SCALES)
def test_the_ends_of_the_weight_are_the_two_looks(scale):
    second = [0.3, -2.0, 7.0]
    assert ids(second_look(FIRST, second, Fusion(1, scale))) == ["a", "b", "c"]
    assert ids(second_look(FIRST, second, Fusion(0, scale))) == ["c", "a", "b"]


@pytest.mark.parametrize("scale", SCALES)
def test_a_query_without_hits_and_one_with_a_single_hit_are_no_trouble(scale):
    assert second_look(Ranking("q", ()), [], Fusion(0.5, scale)).hits == ()
    one = Ranking("q", (Hit("a", 3.0),))
    assert ids(second_look(one, [5.0], Fusion(0.5, scale))) == ["a"]


@pytest.mark.parametrize("scale", ["min-max", "z"])
def test_a_look_that_cannot_tell_hits_apart_has_no_say(scale):
    assert fuse([0.1 + 0.2, 0.3, 0.3], [1, 3, 2], Fusion(0.9, scale)).argsort().tolist() == [
        0,
        2,
        1,
    ]


scores = st.lists(st.integers(-1000, 1000), min_size=2, max_size=20, unique=True)


@settings(deadline=None)  # a busy machine is not a slow function
@given(scores, st.integers(0, 10), st.sampled_from(SCALES), st.floats(0.1, 10), st.data())
def test_neither_looks_unit_matters(first, tenths, scale, factor, data):
    second = data.draw(st.permutations(first))
    fusion = Fusion(tenths / 10, scale)
    before = fuse(first, second, fusion)
    after = fuse(np.array(first) * factor + 3, np.array(second) / factor, fusion)
    assert after == pytest.approx(before, abs=1e-6)


@settings(deadline=None)
@given(scores, st.integers(0, 10), st.sampled_from(SCALES), st.data())
def test_a_hit_that_both_looks_prefer_stays_above(first, tenths, scale, data):
    second = data.draw(st.permutations(first))
    fused = fuse(first, second, Fusion(tenths / 10, scale))
    for a in range(len(first)):
        for b in range(len(first)):
            if first[a] > first[b] and second[a] > second[b]:
                assert fused[a] > fused[b]


def test_two_rankings_become_one_by_reciprocal_rank():
    words = Ranking.of("q", [Hit("a", 9.0), Hit("b", 5.0), Hit("c", 1.0)])
    near = Ranking.of("q", [Hit("c", 0.9), Hit("d", 0.8)])
    both = fuse_rankings(words, near, Fusion(0.5, "ranks"), 10)
    expected = {"a": 1 / 61, "b": 1 / 62, "c": 1 / 63 + 1 / 61, "d": 1 / 62}
    assert {hit.doc_id: 2 * hit.score for hit in both.hits} == pytest.approx(expected)
    assert [hit.doc_id for hit in both.hits] == ["c", "a", "d", "b"]
    assert fuse_rankings(words, near, Fusion(0.5, "ranks"), 2) == both.top(2)


def test_what_one_ranking_lacks_counts_as_its_last():
    words = Ranking.of("q", [Hit("a", 9.0), Hit("b", 5.0), Hit("c", 1.0)])
    near = Ranking.of("q", [Hit("c", 0.9), Hit("d", 0.8)])
    both = fuse_rankings(words, near, Fusion(0.25, "min-max"), 10)
    scores = {hit.doc_id: hit.score for hit in both.hits}
    assert scores == pytest.approx({"a": 0.25, "b": 0.125, "c": 0.75, "d": 0.0})
    z = {hit.doc_id: hit.score for hit in fuse_rankings(words, near, Fusion(0.25, "z"), 10).hits}
    deviations = np.array([4.0, 0.0, -4.0]) / np.std([9.0, 5.0, 1.0])
    assert z["a"] == pytest.approx(0.25 * deviations[0] - 0.75)
    assert z["d"] == pytest.approx(0.25 * deviations[2] - 0.75)


def test_a_ranking_without_hits_leaves_the_other_as_it_is():
    near = Ranking.of("q", [Hit("c", 0.9), Hit("d", 0.8)])
    both = fuse_rankings(Ranking("q", ()), near, Fusion(0.5, "ranks"), 10)
    assert [hit.doc_id for hit in both.hits] == ["c", "d"]


@pytest.mark.parametrize("scale", SCALES)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
@settings(max_examples=50, deadline=None)
def test_many_weights_at_once_give_what_each_gives_alone(scale, scores):
    # few different scores: ties are broken alike
    hits = [Hit(f"d{place}", float(first)) for place, (first, _) in enumerate(scores)]
    first = Ranking.of("q", hits)
    second = [float(scores[int(hit.doc_id[1:])][1]) for hit in first.hits]
    weights = [0.25, 0.5, 1.0]
    at_once = BothScores.of_same_hits(first, second, scale).fused(weights)
    assert at_once == [second_look(first, second, Fusion(weight, scale)) for weight in weights]
    few = BothScores.of_same_hits(first, second, scale).fused(weights, 3)
    assert few == [ranking.top(3) for ranking in at_once]
    near = second_look(first, second)
    together = BothScores.of_rankings(first, near, scale).fused(weights)
    if scale == "min-max":  # ranks of ties and means depend on the order that hits come in
        assert together == at_once
