"""Clicks, as a newcomer would call it."""

from __future__ import annotations

import json

from command_line import secondlook
from secondlook.data import read_qrels, read_queries


def test_a_log_becomes_queries_and_judgments(tmp_path):
    log = tmp_path / "log.tsv"
    log.write_text("cape fear\td1 d2 d3\td2\n" * 10 + "cape fear\td2 d3 d1\td2\n" * 10)
    said = secondlook("clicks", log, "-o", tmp_path / "made", "--eta", "1")
    assert "1/rank^1.00 (as given)" in said
    (query,) = read_queries(tmp_path / "made")
    assert query.text == "cape fear"
    assert read_qrels(tmp_path / "made") == {query.id: {"d1": 0, "d2": 1, "d3": 0}}
    figures = json.loads(
        secondlook("clicks", log, "-o", tmp_path / "again", "--eta", "1", "--json")
    )
    assert figures["relevant"] == 1


def test_what_is_wrong_is_one_line(tmp_path):
    log = tmp_path / "log.tsv"
    log.write_text("cape fear\td1\td2\n")
    said = secondlook("clicks", log, "-o", tmp_path / "made", fails=True)
    assert said.count("\n") == 1
    assert "log.tsv:1: document 'd2' was clicked" in said
    log.write_text("cape fear\td1\td1\n")
    said = secondlook("clicks", log, "-o", tmp_path / "made", fails=True)
    assert "--eta 1" in said
    assert not (tmp_path / "made").exists()
    missing = secondlook("clicks", tmp_path / "no.log", "-o", tmp_path / "made", fails=True)
    assert "cannot be opened" in missing
