import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from secondlook import data
from secondlook.errors import Unwritable
from secondlook.types import Hit, Query, Ranking

CLASSIC = """
<top>

<num> Number: 301
<title> International Organized
   Crime

<desc> Description:
Identify organizations that participate.

<narr> Narrative:
A relevant document must as a minimum identify the organization.

</top>

<TOP>
<NUM> Number: 051 </NUM>
<TITLE> Topic:  Airbus Subsidies </TITLE>
</TOP>
<top>
<num>3<title>a < b & c
</top>
"""

XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- three ways to say a topic -->
<topics task="any">
  <topic number="1" type="faceted">
    <query>coronavirus
      origin</query>
    <question>what is the origin of it?</question>
  </topic>
  <topic><num>Number: 2</num><title>caf\u00e9 &amp; bar</title><desc>not this</desc></topic>
  <topic number="3">A whole
    case, told at length.</topic>
</topics>
"""


def read(function, tmp_path, text, format_="auto"):
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    return function(path, format_)


def test_classic_topics_give_their_titles(tmp_path):
    assert list(read(data.read_queries, tmp_path, CLASSIC)) == [
        Query("301", "International Organized Crime"),
        Query("051", "Airbus Subsidies"),
        Query("3", "a < b & c"),
    ]
    microblog = "<top>\n<num> Number: MB051 </num>\n<query> government cuts </query>\n</top>\n"
    assert list(read(data.read_queries, tmp_path, microblog)) == [Query("MB051", "government cuts")]


def test_topics_in_xml_give_title_or_query_or_their_own_text(tmp_path):
    assert list(read(data.read_queries, tmp_path, XML)) == [
        Query("1", "coronavirus origin"),
        Query("2", "caf\u00e9 & bar"),
        Query("3", "A whole case, told at length."),
    ]


def test_only_a_label_is_taken_off_a_number(tmp_path):
    data.write_queries(tmp_path / "topics.xml", [Query("Number:", "x"), Query("Number:5", "y")])
    again = data.read_queries(tmp_path / "topics.xml")
    assert [query.id for query in again] == ["Number:", "Number:5"]


def test_topics_with_tabs_are_topics_too(tmp_path):
    expected = [Query("19", "what is a tide"), Query("20", "moon")]
    text = "\n19\twhat is a tide\n20\tmoon\n"
    assert list(read(data.read_queries, tmp_path, text, "trec")) == expected


def test_judgments_parted_by_any_white_space(tmp_path):
    text = "q1 0 d1 2\nq1\tQ0\td2\t-1\n  q2  0   d1 \t+1 \n"
    assert read(data.read_qrels, tmp_path, text) == {"q1": {"d1": 2, "d2": -1}, "q2": {"d1": 1}}


def test_the_scores_rank_and_the_rank_column_does_not(tmp_path):
    text = "q Q0 low 1 1.0 t\nq Q0 high 2 3e0 t\nq Q0 b 3 2.0 t\nq Q0 c 4 2.0 t\n"
    (ranking,) = read(data.read_run, tmp_path, text)
    assert [hit.doc_id for hit in ranking.hits] == ["high", "c", "b", "low"]


def test_only_ascii_white_space_parts_columns(tmp_path):
    (ranking,) = read(data.read_run, tmp_path, "q\u00a01 Q0\td\u2003é\t1  1.5 tag \n")
    assert ranking == Ranking("q\u00a01", (Hit("d\u2003é", 1.5),))


def test_rankings_come_as_soon_as_a_query_ends(tmp_path):
    good = "".join(f"{query} Q0 d 1 1 t\n" for query in range(100_000))
    rankings = read(data.read_run, tmp_path, good + "wrong\n", "trec")
    assert next(rankings).query_id == "0"
    assert next(rankings).query_id == "1"


@pytest.mark.parametrize(
    "hits",
    [
        {"a": 1.0 + 1e-12, "b": 1.0},
        {"a": 16777217.0, "b": 16777216.0},
        {"a": 1e-46, "b": 0.0},
        {"a": 1.0 + 1e-6, "b": 1.0},
        {"\uffff": 1.0, "\U00010000": 1.0, "z": 1.0},
    ],
)
def test_near_and_equal_scores_rank_as_trec_eval_ranks_them(tmp_path, hits):
    assert ours(tmp_path, hits) == trec_evals(hits)


@settings(max_examples=50, deadline=None)
@given(
    scores=st.lists(
        st.floats(-4, 4) | st.sampled_from([1.0, 1.0 + 1e-9, 1.0 - 1e-9, -0.0, 0.0]),
        min_size=1,
        max_size=12,
    )
)
def test_any_scores_rank_as_trec_eval_ranks_them(tmp_path_factory, scores):
    hits = {f"d{i}": score for i, score in enumerate(scores)}
    assert ours(tmp_path_factory.mktemp("run"), hits) == trec_evals(hits)


def ours(tmp_path, hits):
    rows = [f"q Q0 {doc_id} 0 {score!r} t\n" for doc_id, score in hits.items()]
    (ranking,) = read(data.read_run, tmp_path, "".join(rows), "trec")
    return [hit.doc_id for hit in ranking.hits]


def trec_evals(hits):
    """The order trec_eval gives them, one reciprocal rank after the other."""
    ranks = {}
    for doc_id in hits:
        evaluator = pytrec_eval.RelevanceEvaluator({"q": {doc_id: 1}}, {"recip_rank"})
        ranks[doc_id] = round(1 / evaluator.evaluate({"q": hits})["q"]["recip_rank"])
    return sorted(hits, key=ranks.__getitem__)


@pytest.mark.parametrize("bad", ["a b", "a\tb", "a\u00a0b", "", "a\nb", "\ufeffa", "a\x1fb"])
def test_ids_that_would_break_columns_are_refused(tmp_path, bad):
    with pytest.raises(Unwritable):
        data.write_run(tmp_path / "run.trec", [Ranking("q", (Hit(bad, 1.0),))])
    with pytest.raises(Unwritable):
        data.write_run(tmp_path / "run.trec", [Ranking(bad, (Hit("d", 1.0),))])
    with pytest.raises(Unwritable):
        data.write_run(tmp_path / "run.trec", [], tag=bad)
    with pytest.raises(Unwritable):
        data.write_qrels(tmp_path / "qrels.txt", {"q": {bad: 1}})
    with pytest.raises(Unwritable):
        data.write_queries(tmp_path / "topics.xml", [Query(bad, "text")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("score", [float("inf"), -1e39])
def test_scores_that_cannot_be_ranked_are_refused(tmp_path, score):
    with pytest.raises(Unwritable, match="score"):
        data.write_run(tmp_path / "run.trec", [Ranking("q", (Hit("d", score),))])


def test_what_xml_cannot_hold_is_refused(tmp_path):
    with pytest.raises(Unwritable, match="XML cannot hold"):
        data.write_queries(tmp_path / "topics.xml", [Query("1", "bell \x07")])
    with pytest.raises(Unwritable, match="type"):
        data.write_queries(tmp_path / "topics.xml", [Query("1", "x", "person")])


def test_a_run_carries_its_tag_and_a_query_without_hits_leaves_no_line(tmp_path):
    rankings = [Ranking("q", (Hit("b", 2.0), Hit("a", 0.5))), Ranking("none", ())]
    data.write_run(tmp_path / "run.trec", rankings, tag="bm25")
    assert (tmp_path / "run.trec").read_text() == "q Q0 b 1 2.0 bm25\nq Q0 a 2 0.5 bm25\n"


def test_markup_in_a_title_is_part_of_the_query(tmp_path):
    titles = "<top>\n<num> 1\n<title> how to use <div> in html </title>\n<desc> x\n</top>\n"
    assert list(read(data.read_queries, tmp_path, titles)) == [
        Query("1", "how to use <div> in html")
    ]
    in_one_line = "<top>\n<num>2</num><title>a <b>bold</b> crime</title><desc>x</desc>\n</top>\n"
    assert list(read(data.read_queries, tmp_path, in_one_line)) == [
        Query("2", "a <b>bold</b> crime")
    ]
