"""What a writer wrote is read back equal, in every format and compression."""

import string
from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secondlook import data
from secondlook.types import Document, Hit, Query, Ranking

COMPRESSIONS = ["", ".gz", ".zst"]

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
tab_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r"))
xml_text = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n\r\x85 <&>\"'")
)
beir_ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
tab_ids = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r\ufeff"), min_size=1
)
words = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=20,
)
xml_words = words.filter(lambda word: not {"\ufffe", "\uffff"} & set(word))
types = st.none() | st.text(string.ascii_lowercase, min_size=1, max_size=12)
grades = st.integers(-(10**18) + 1, 10**18 - 1)
scores = st.floats(allow_nan=False, allow_infinity=False, width=32)

every_file = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


def listed(ids, make, **extra):
    """Lists of at least one item with distinct ids."""
    return st.lists(
        st.builds(make, ids, **extra), min_size=1, max_size=8, unique_by=lambda item: item.id
    )


def judged(ids):
    inner = st.dictionaries(ids, grades, min_size=1, max_size=5)
    return st.dictionaries(ids, inner, min_size=1, max_size=5)


def ranked(ids):
    hits = st.dictionaries(ids, scores, min_size=1, max_size=8).map(
        lambda found: [Hit(doc_id, score) for doc_id, score in found.items()]
    )
    return st.dictionaries(ids, hits, max_size=5).map(
        lambda runs: [Ranking.of(query_id, hits) for query_id, hits in runs.items()]
    )


@pytest.mark.parametrize("end", COMPRESSIONS)
class TestEveryFormat:
    @every_file
    @given(documents=listed(beir_ids, Document, text=any_text, title=any_text))
    def test_beir_corpus(self, tmp_path, end, documents):
        path = tmp_path / f"corpus.jsonl{end}"
        data.write_corpus(path, documents)
        assert list(data.read_corpus(path)) == documents

    @every_file
    @given(documents=listed(tab_ids, Document, text=tab_text, title=st.just("")))
    def test_msmarco_collection(self, tmp_path, end, documents):
        path = tmp_path / f"collection.tsv{end}"
        data.write_corpus(path, documents)
        assert list(data.read_corpus(path, "msmarco")) == documents

    @every_file
    @given(queries=listed(beir_ids, Query, text=any_text, type=types))
    def test_beir_queries(self, tmp_path, end, queries):
        path = tmp_path / f"queries.jsonl{end}"
        data.write_queries(path, queries)
        assert list(data.read_queries(path)) == queries

    @every_file
    @given(queries=listed(tab_ids, Query, text=tab_text, type=st.none()))
    def test_msmarco_queries(self, tmp_path, end, queries):
        path = tmp_path / f"queries.tsv{end}"
        data.write_queries(path, queries)
        assert list(data.read_queries(path, "msmarco")) == queries

    @every_file
    @given(queries=listed(xml_words, Query, text=xml_text, type=st.none()))
    def test_trec_topics(self, tmp_path, end, queries):
        path = tmp_path / f"topics.xml{end}"
        data.write_queries(path, queries)
        assert list(data.read_queries(path)) == queries

    @every_file
    @given(qrels=judged(tab_ids))
    def test_beir_qrels(self, tmp_path, end, qrels):
        path = tmp_path / f"test.tsv{end}"
        data.write_qrels(path, qrels)
        assert data.read_qrels(path) == qrels

    @every_file
    @given(qrels=judged(words))
    def test_trec_qrels(self, tmp_path, end, qrels):
        path = tmp_path / f"qrels.txt{end}"
        data.write_qrels(path, qrels)
        assert data.read_qrels(path) == qrels

    @every_file
    @given(rankings=ranked(words))
    def test_trec_run(self, tmp_path, end, rankings):
        path = tmp_path / f"run.trec{end}"
        data.write_run(path, rankings)
        assert list(data.read_run(path)) == rankings

    @every_file
    @given(rankings=ranked(tab_ids))
    def test_msmarco_run_keeps_the_order(self, tmp_path, end, rankings):
        path = tmp_path / f"run.tsv{end}"
        data.write_run(path, rankings)
        again = list(data.read_run(path, "msmarco"))
        assert [order(ranking) for ranking in again] == [order(ranking) for ranking in rankings]
        assert all(
            hit.score == single(1 / rank)
            for ranking in again
            for rank, hit in enumerate(ranking.hits, start=1)
        )


def order(ranking):
    return ranking.query_id, [hit.doc_id for hit in ranking.hits]


def single(score):
    return array("f", [score])[0]


@every_file
@given(score=st.floats(-3.4e38, 3.4e38))
def test_a_double_score_reads_back_as_its_nearest_single(tmp_path, score):
    data.write_run(tmp_path / "run.trec", [Ranking("q", (Hit("d", score),))])
    assert [hit.score for r in data.read_run(tmp_path / "run.trec") for hit in r.hits] == [
        single(score)
    ]


def test_scores_of_numpy_are_written_as_numbers(tmp_path):
    import numpy as np

    data.write_run(tmp_path / "run.trec", [Ranking("q", (Hit("d", np.float32(0.1)),))])
    assert (tmp_path / "run.trec").read_text() == "q Q0 d 1 0.10000000149011612 secondlook\n"


def test_equal_content_gives_equal_bytes_at_any_time(tmp_path, monkeypatch):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        monkeypatch.setattr("time.time", lambda name=name: float(ord(name[0])))
        data.write_corpus(tmp_path / name, [Document("1", "the same")])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
