import numpy as np
import pytest

from secondlook.errors import SecondlookError, WrongArgument
from secondlook.evaluate.compare import compare
from secondlook.evaluate.verdict import figure_rows, sentence, warnings
from secondlook.types import Hit, Ranking

QUERIES = [f"q{number}" for number in range(40)]


def judged(grades):
    """The same grades for each query, of documents of its own: no query is a copy of another."""
    return {
        query: {f"{name} {query}": grade for name, grade in grades.items()} for query in QUERIES
    }


QRELS = judged({"good": 1, "bad": 0, "worse": 0})


def run(places, documents=("bad", "worse")):
    """A run in which the good document of query i stands at places[i], counted from 0."""
    rankings = []
    for query, place in zip(QUERIES, places, strict=False):
        order = list(documents)
        order.insert(place, "good")
        hits = [Hit(f"{name} {query}", float(10 - at)) for at, name in enumerate(order)]
        rankings.append(Ranking.of(query, hits))
    return rankings


def compared(*runs, measures=("RR@10",), qrels=QRELS, alpha=0.05):
    (base, *others) = ((name, iter(rankings)) for name, rankings in zip("bcd", runs, strict=False))
    return compare(qrels, base, others, measures, rng=np.random.default_rng(0), alpha=alpha)


def test_a_run_that_gains_everywhere_helps_and_the_other_way_round_hurts():
    better, worse = run([0] * 40), run([1] * 40)
    [helps] = compared(worse, better).runs
    [hurts] = compared(better, worse).runs
    assert (helps.verdict, hurts.verdict) == ("helps", "hurts")
    [one] = hurts.differences
    assert (one.wins, one.ties, one.losses) == (0, 0, 40)
    assert (one.base, one.new, one.delta) == (1.0, 0.5, -0.5)
    assert one.hurt == 1.0
    assert one.more_queries == 0


def test_the_same_run_twice_is_said_to_be_identical():
    found = compared(run([0, 1] * 20), run([0, 1] * 20))
    assert found.runs[0].verdict == "cannot tell"
    assert found.runs[0].differences[0].more_queries is None
    assert "identical (same documents, same scores) on all 40" in sentence(found.runs[0], found)


def test_runs_of_other_scores_and_the_same_values_are_said_to_be_so():
    base = run([0, 1] * 20)
    new = [Ranking(r.query_id, tuple(Hit(h.doc_id, h.score / 2) for h in r.hits)) for r in base]
    found = compared(base, new)
    assert sentence(found.runs[0], found) == (
        "cannot tell: RR@10 is the same (0.750) for each of 40 queries"
    )


def test_a_small_difference_says_how_many_more_queries_would_tell():
    new = [0] * 40
    new[0] = 1
    base = [0] * 40
    base[1:3] = [1, 1]
    found = compared(run(base), run(new))
    [one] = found.runs[0].differences
    assert one.verdict == "cannot tell"
    assert one.more_queries > 100
    assert f"{one.more_queries:,} more judged queries would tell" in sentence(found.runs[0], found)


def test_harm_in_one_measure_outweighs_help_in_another():
    # the good document moves from place 2 to 1 everywhere, and nothing else is found any more
    qrels = judged({"good": 1, "bad": 1})
    base = run([1] * 40, documents=("x", "bad"))
    new = run([0] * 40, documents=("y", "z"))
    found = compared(base, new, measures=("RR@10", "R@10"), qrels=qrels)
    assert [one.verdict for one in found.runs[0].differences] == ["helps", "hurts"]
    assert found.runs[0].verdict == "hurts"
    assert "but RR@10 0.500 → 1.000" in sentence(found.runs[0], found)


def test_more_runs_make_each_harder_to_tell():
    places = [1] * 6 + [0] * 34  # six queries of forty gain: p = 1/32
    better, base, same = run([0] * 40), run(places), run(places)
    assert compared(base, better).runs[0].verdict == "helps"
    assert compared(base, better, same).runs[0].verdict == "cannot tell"


def test_unjudged_results_are_warned_of_with_their_share():
    found = compared(run([0] * 40), run([0] * 40, documents=("new", "newer")))
    assert found.judged_share == pytest.approx(1.0)
    assert found.runs[0].judged_share == pytest.approx(1 / 3)
    [warning] = warnings(found)
    assert "only 33% of the top 10 of c are judged (100% of b)" in warning


def test_many_missing_and_few_judged_queries_are_objected_to():
    qrels = {query: QRELS[query] for query in QUERIES[:10]}
    found = compared(run([0] * 40), run([0] * 8), qrels=qrels)
    missing, few = found.runs[0].objections
    assert (missing.code, few.code) == ("missing", "few-queries")
    assert "c has no results for 2 of 10 judged queries" in missing.sentence
    assert few.sentence.startswith("10 judged queries are few")
    assert warnings(found) == []


def test_one_missing_query_of_forty_is_warned_of():
    found = compared(run([0] * 40), run([0] * 39))
    assert found.runs[0].objections == ()
    [warning] = warnings(found)
    assert "c has no results for 1 of 40 judged queries" in warning


def test_judgments_that_name_only_answers_make_no_alarm_of_unjudged_results():
    found = compared(run([1] * 40), run([0] * 40), qrels=judged({"good": 1}))
    assert found.runs[0].judged_share == pytest.approx(1 / 3)
    [warning] = warnings(found)
    assert warning.startswith("the judgments name only relevant documents, 1.0 for a query")


def test_a_p_value_does_not_depend_on_what_else_is_compared():
    base, new, other = run([1, 0, 1, 2] * 10), run([0, 0, 2, 1] * 10), run([2, 1, 0, 0] * 10)
    alone = compared(base, new).runs[0].differences[0]
    among = compared(base, other, new, measures=("R@1", "RR@10")).runs[1].differences[1]
    assert (alone.randomisation, alone.low) == (among.randomisation, among.low)


def test_runs_without_any_judged_query_are_refused():
    strangers = [Ranking("other", (Hit("good", 1.0),))]
    with pytest.raises(SecondlookError, match="none of the 40 judged ones"):
        compared(run([0] * 40), strangers)
    with pytest.raises(SecondlookError, match="c is empty"):
        compared(run([0] * 40), [])


def test_few_lost_queries_do_hurt_though_nothing_answers_them():
    found = compared(run([0] * 40), run([0] * 30))
    assert found.runs[0].verdict == "hurts"
    assert [one.code for one in found.runs[0].objections] == ["missing"]


def test_a_measure_spelled_twice_is_one_test():
    found = compared(run([0] * 40), run([1] * 40), measures=("RR@10", "RR(rel=1)@10", "RR@10"))
    assert len(found.runs[0].differences) <= 2


def test_real_runs_agree_with_scipy(shared_data):
    from scipy import stats

    from secondlook.data import read_qrels, read_run
    from secondlook.evaluate.measures import evaluate

    folder = shared_data / "msmarco-dl"
    qrels = read_qrels(str(folder / "qrels" / "dl20.tsv"))
    paths = [str(folder / "runs" / f"dl20.{name}.trec.gz") for name in ("bm25", "bm25_rm3")]
    values = [
        list(evaluate(qrels, read_run(path), ["nDCG@10"]).per_query["nDCG@10"].values())
        for path in paths
    ]
    base, new = ((path, read_run(path)) for path in paths)
    found = compare(qrels, base, [new], ["nDCG@10"], rng=np.random.default_rng(0))
    [one] = found.runs[0].differences
    assert one.t_test == pytest.approx(stats.ttest_rel(*values).pvalue, abs=1e-6)
    theirs = stats.permutation_test(
        (values[1], values[0]),
        lambda new, old, axis: np.mean(new - old, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    ).pvalue
    assert one.randomisation == pytest.approx(theirs, abs=0.03)


@pytest.mark.parametrize("alpha", [5, 1.0, 0, -1, float("nan")])
def test_what_is_no_significance_level_is_refused(alpha):
    with pytest.raises(WrongArgument, match="alpha is the significance level"):
        compared(run([1] * 40), run([0] * 40), alpha=alpha)


@pytest.mark.parametrize(("alpha", "shown"), [(0.05, "95%"), (0.025, "97.5%"), (0.001, "99.9%")])
def test_the_interval_is_named_by_its_level(alpha, shown):
    found = compared(run([1, 0] * 20), run([0] * 40), alpha=alpha)
    names = [name for name, _ in figure_rows(found.runs[0], found)]
    assert f"{shown} interval" in names
