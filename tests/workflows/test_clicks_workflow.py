"""Judgments from a click log, as a program calls it."""

import pytest

from secondlook.data import read_qrels, read_queries
from secondlook.errors import SecondlookError, Unwritable
from secondlook.workflows.clicks import clicks


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text("cape fear\td1 d2 d3\td2\n" * 10 + "cape fear\td2 d3 d1\td2\n" * 10)
    return path


def test_a_log_becomes_queries_and_judgments(log, capsys):
    seen = []
    made = log.parent / "made"
    result = clicks(str(log), made, eta=1, progress=lambda *step: seen.append(step))
    assert result.to_dict()["error"] is None  # as eta was given, it has none
    (query,) = read_queries(made)
    assert read_qrels(made) == {query.id: {"d1": 0, "d2": 1, "d3": 0}}
    assert (result.queries, result.relevant, result.not_relevant) == (1, 1, 2)
    assert "1/rank^1.00 (as given)" in result.summary()
    assert result.to_dict()["not relevant"] == 2
    assert seen[-1] == ("reading", 20, None)
    assert capsys.readouterr() == ("", "")


def test_judgments_of_people_are_not_overwritten_nor_is_the_log_read_first(log, monkeypatch):
    made = log.parent / "made"
    clicks(log, made, eta=1)
    clicks(log, made, eta=2)  # its own are
    (made / "qrels" / "train.labels.json").unlink()
    monkeypatch.setattr("secondlook.data.clicks.read_clicks", None)
    with pytest.raises(Unwritable, match="another folder as `output`"):
        clicks(log, made, eta=1)


def test_what_the_log_does_not_tell_is_asked_for_by_an_arguments_name(log):
    log.write_text("cape fear\td1\td1\n")
    with pytest.raises(SecondlookError, match="`eta` 1") as problem:
        clicks(log, log.parent / "made")
    assert "--" not in str(problem.value)
