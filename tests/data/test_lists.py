import pytest

from secondlook.data import read_run
from secondlook.errors import MalformedInput


def test_a_list_of_candidates_is_a_ranking(tmp_path):
    path = tmp_path / "pool.tsv"
    path.write_text("q1\tb a c d e\nq2\tz\n")
    assert [(r.query_id, [hit.doc_id for hit in r.hits]) for r in read_run(path)] == [
        ("q1", ["b", "a", "c", "d", "e"]), ("q2", ["z"]),
    ]  # fmt: skip


def test_a_trec_run_with_a_tab_behind_the_query_is_no_list(tmp_path):
    (tmp_path / "run").write_text("q1\tQ0 d1 1 2.0 tag\n")
    [ranking] = read_run(tmp_path / "run")
    assert [(hit.doc_id, hit.score) for hit in ranking.hits] == [("d1", 2.0)]


def test_a_document_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "pool.tsv"
    path.write_text("q1\tb a b\n")
    with pytest.raises(MalformedInput, match=r"pool\.tsv:1: document 'b' stands twice"):
        list(read_run(path))
