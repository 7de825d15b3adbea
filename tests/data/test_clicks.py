"""A click log is read in either form, and what is wrong with it is said in one line."""

from __future__ import annotations

import gzip
import json

import pytest

from secondlook.data import read_qrels, read_queries, write_qrels, write_queries
from secondlook.data.clicks import Impression, read_clicks
from secondlook.data.origin import read_origin, write_made, write_origin
from secondlook.data.splits import add_judged
from secondlook.errors import MalformedInput, Unwritable
from secondlook.types import Query

LOG = [
    Impression("cape fear", ("d3", "d1", "d7"), frozenset({"d1", "d7"})),
    Impression("bogue", ("d3",), frozenset()),
    Impression("nothing found", (), frozenset()),
]


def test_both_forms_say_the_same(tmp_path):
    objects, columns = tmp_path / "log.jsonl", tmp_path / "log.tsv.gz"
    rows = [{"query": i.query, "shown": i.shown, "clicked": sorted(i.clicked)} for i in LOG]
    objects.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{i.query}\t{' '.join(i.shown)}\t{' '.join(sorted(i.clicked))}\n" for i in LOG]
    columns.write_bytes(gzip.compress("".join(lines).encode()))
    assert list(read_clicks(objects)) == list(read_clicks(columns)) == LOG


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"query": "q", "shown": ["d1"]}', r'1: "clicked" must be a list of document ids'),
        ('{"query": "q", "shown": "d1", "clicked": []}', r'1: "shown" must be a list'),
        ('{"query": 3, "shown": [], "clicked": []}', r'1: "query" must be a text'),
        ('{"query": " ", "shown": [], "clicked": []}', r"1: the query is empty"),
        ('{"query": "q", "shown": ["d1"], "clicked": ["d2"]}', r"1: document 'd2' was clicked"),
        ('{"query": "q", "shown": ["d1", "d1"], "clicked": []}', r"1: shows document 'd1' twice"),
        ('{"query": "q"', r"1: is not JSON"),
        ("q\td1 d2", r"1: must be 3 columns parted by tabs \(query shown clicked\)"),
        ("q\td1 d2\td3", r"1: document 'd3' was clicked, but is not among those shown"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(tmp_path, line, says):
    (tmp_path / "log").write_text(line + "\n")
    with pytest.raises(MalformedInput, match=says):
        list(read_clicks(tmp_path / "log"))


def test_where_judgments_come_from_stands_beside_them(tmp_path):
    write_made(tmp_path, [Query("q1", "cape fear")], {"q1": {"d1": 1}}, "clicks: 3 impressions")
    assert read_origin(tmp_path / "qrels" / "train.tsv") == "clicks: 3 impressions"
    assert read_origin(tmp_path / "qrels" / "test.tsv") == ""
    assert read_qrels(tmp_path) == {"q1": {"d1": 1}}
    (tmp_path / "qrels" / "train.labels.json").write_text("[]")
    with pytest.raises(MalformedInput, match="mend it"):
        read_origin(tmp_path / "qrels" / "train.tsv")


def made_from_clicks(folder, *texts):
    asked = [Query(f"c{text}", text) for text in texts]
    write_made(folder, asked, {query.id: {"d1": 1} for query in asked}, "clicks")


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/train.tsv"])
def test_what_people_wrote_is_not_overwritten(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("hours of work")
    with pytest.raises(Unwritable, match=r"may be the work of people: .*`output`"):
        made_from_clicks(tmp_path, "cape")
    assert path.read_text() == "hours of work"
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == [path.name]


@pytest.mark.parametrize("name", ["test.tsv", "judged-in-may.tsv.gz", "dev.trec"])
def test_queries_that_people_added_stay_when_others_are_made(tmp_path, name):
    made_from_clicks(tmp_path, "cape", "bogue", "tide")
    added = [Query("p1", "judged", "numeric"), Query("p2", "to be judged")]
    write_queries(tmp_path / "queries.jsonl", [*read_queries(tmp_path), *added])
    write_qrels(tmp_path / "qrels" / name, {"p1": {"d3": 2}, "cbogue": {"d4": 1}})
    before = (tmp_path / "qrels" / name).read_bytes()
    made_from_clicks(tmp_path, "tide", "sea")
    kept = {query.id: query.type for query in read_queries(tmp_path)}
    assert kept == {"ctide": None, "csea": None, "cbogue": None, "p1": "numeric", "p2": None}
    assert read_qrels(tmp_path / "qrels" / "train.tsv").keys() == {"ctide", "csea"}
    assert (tmp_path / "qrels" / name).read_bytes() == before


@pytest.mark.parametrize("broken", ["write_queries", "write_qrels"])
def test_after_a_kill_the_same_is_made_again(tmp_path, monkeypatch, broken):
    with monkeypatch.context() as patch:
        patch.setattr(f"secondlook.data.origin.{broken}", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            made_from_clicks(tmp_path, "cape")
    made_from_clicks(tmp_path, "cape")
    assert read_qrels(tmp_path) == {"ccape": {"d1": 1}}


def test_what_people_judged_stays_theirs_and_is_not_learnt_from(tmp_path):
    made, judged = tmp_path / "made", tmp_path / "judged"
    asked = [Query("c1", "Cape Fear"), Query("c2", "bogue")]
    write_made(made, asked, {"c1": {"d1": 1}, "c2": {"d2": 1}}, "clicks")
    (judged / "qrels").mkdir(parents=True)
    write_queries(judged / "queries.jsonl", [Query("p1", "cape fear"), Query("p2", "unjudged")])
    write_qrels(judged / "qrels" / "test.tsv", {"p1": {"d3": 2}})
    write_origin(judged / "qrels" / "train.tsv", "not looked at")
    for _ in range(2):  # after a kill it is done again
        add_judged(made, judged)
        assert {query.id for query in read_queries(made)} == {"c2", "p1"}
        assert read_qrels(made / "qrels" / "train.tsv") == {"c2": {"d2": 1}}
        assert read_qrels(made / "qrels" / "test.tsv") == {"p1": {"d3": 2}}


def test_without_people_what_was_made_stays_as_it_was(tmp_path):
    write_made(tmp_path / "made", [Query("c1", "cape")], {"c1": {"d1": 1}}, "clicks")
    add_judged(tmp_path / "made", tmp_path / "nobody")
    assert read_qrels(tmp_path / "made") == {"c1": {"d1": 1}}
