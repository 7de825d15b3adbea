"""A tuned ranker is tested against what it was made from, too."""

from __future__ import annotations

import numpy as np
import pytest

from secondlook.evaluate.compare import compare
from secondlook.evaluate.significance import detectable, holm, queries_needed
from secondlook.evaluate.tuned import compare_tuned
from secondlook.types import Hit, Ranking

QUERIES = [f"q{n}" for n in range(60)]
QRELS = {query: {f"{query}-right": 1, f"{query}-0": 0} for query in QUERIES}


def run(name, ranks):
    """The right document of each query at this rank."""

    def hits(query, rank):
        others = [f"{query}-{n}" for n in range(9)]
        documents = [*others[: rank - 1], f"{query}-right", *others[rank - 1 :]]
        return [Hit(document, 10.0 - place) for place, document in enumerate(documents)]

    ranked = zip(QUERIES, ranks, strict=True)
    return name, [Ranking.of(query, hits(query, rank)) for query, rank in ranked]


BM25 = run("bm25", [5 + n % 3 for n in range(60)])
GOOD = run("good", [2 + n % 3 for n in range(60)])
BEST = run("best", [1 + n % 2 for n in range(60)])


def compared(untuned, tuned, **more):
    rng = np.random.default_rng(0)
    return compare_tuned(QRELS, BM25, untuned, tuned, ["nDCG@10"], rng=rng, **more)


def test_all_three_pairs_are_tested_and_corrected_together():
    found = compared(GOOD, BEST)
    assert found.gain is not None
    assert [one.run for one in found.first_stage.runs] == ["good", "best"]
    tests = [*found.first_stage.runs, *found.gain.runs]
    adjusted = [one.differences[0].adjusted for one in tests]
    assert adjusted == pytest.approx(holm([one.differences[0].randomisation for one in tests]))
    assert found.gain_sentence().startswith("tuning helped: ")


def test_what_only_a_test_alone_would_tell_says_how_many_queries_all_tests_need():
    bm25, untuned = run("bm25", [1] * 54 + [2] * 6), run("untuned", [2] * 6 + [1] * 54)
    found = compare_tuned(QRELS, bm25, untuned, run("tuned", [1] * 60), ["nDCG@10"])
    assert found.gain is not None
    [one] = found.gain.runs[0].differences
    assert one.randomisation < 0.05 < one.adjusted
    assert one.verdict == "cannot tell"
    deltas = np.array(list(one.deltas.values()))
    assert one.detectable == detectable(deltas, 0.05 / 3)
    assert one.more_queries == queries_needed(deltas, 0.05 / 3) - 60 > 0
    assert f"about {one.more_queries} more judged queries would tell" in found.gain_sentence()


@pytest.mark.parametrize(
    ("untuned", "tuned", "words"),
    [
        (BEST, GOOD, "tuning HURT: the tuned ranker is worse"),
        (GOOD, run("same", [2 + (n + 1) % 3 for n in range(60)]), "not shown to be better"),
    ],
)
def test_where_tuning_did_not_help_that_is_said(untuned, tuned, words):
    found = compared(untuned, tuned)
    assert found.tuned.verdict == "helps"  # against BM25
    assert words in found.gain_sentence()


def test_a_gain_that_is_the_first_stages_is_said_to_be():
    assert "without the re-ranker" not in compared(GOOD, BEST).gain_sentence()
    words = compared(GOOD, BEST, first_stage_alone=True).gain_sentence()
    assert words.startswith("tuning helped: ")
    assert words.endswith(". Search without the re-ranker, and save its time")


def test_one_ranker_is_compared_once():
    found = compared(None, GOOD)
    alone = compare(QRELS, BM25, [GOOD], ["nDCG@10"], rng=np.random.default_rng(0))
    assert found.first_stage == alone
    assert found.gain is None
    assert "the tuned ranker is the untuned one" in found.gain_sentence()
