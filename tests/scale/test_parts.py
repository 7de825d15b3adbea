from secondlook.scale.parts import Parts, result_of
from secondlook.scale.rerank import as_work, from_work
from secondlook.types import Hit, Query, Ranking


def finish(work):
    result_of(work).write_text(work.read_text().upper())


def test_a_second_start_of_the_same_job_does_only_what_is_missing(tmp_path):
    parts = Parts(tmp_path / "run.trec", {"of": "this"})
    assert parts.give(["a", "b", "c"]) == 3
    finish(parts.missing(3)[1])
    del parts  # ended, and its lock with it
    again = Parts(tmp_path / "run.trec", {"of": "this"})
    assert again.give(["a", "b", "c"]) == 3
    left = again.missing(3)
    assert [path.read_text() for path in left] == ["a", "c"]
    for work in left:
        finish(work)
    assert again.missing(3) == []
    assert [path.read_text() for path in again.results(3)] == ["A", "B", "C"]
    again.remove()
    assert list(tmp_path.iterdir()) == []


def test_another_job_starts_from_nothing(tmp_path):
    first = Parts(tmp_path / "run.trec", {"of": "this"})
    first.give(["a"])
    finish(first.missing(1)[0])
    other = Parts(tmp_path / "run.trec", {"of": "that"})
    assert other.give(["x"]) == 1
    assert [path.read_text() for path in other.missing(1)] == ["x"]


def test_parts_before_the_first_are_neither_laid_down_nor_asked_for(tmp_path):
    parts = Parts(tmp_path / "run.trec", {}, first=2)
    assert parts.give(["c", "d"]) == 4
    assert [path.name for path in parts.missing(4)] == ["000002.work", "000003.work"]
    for work in parts.missing(4):
        finish(work)
    assert [path.read_text() for path in parts.results(4)] == ["C", "D"]
    later = Parts(tmp_path / "run.trec", {}, first=3)  # what it did before is kept
    assert later.give(["d"]) == 4
    assert later.missing(4) == []
    assert [path.read_text() for path in later.results(4)] == ["D"]
    assert Parts(tmp_path / "run.trec", {}, first=4).give([]) == 4


def test_no_work_is_no_parts(tmp_path):
    parts = Parts(tmp_path / "run.trec", {})
    assert parts.give([]) == 0
    assert parts.missing(0) == []


def test_work_says_all_that_a_ranker_may_look_at():
    queries = [Query("q1", "héllo\nthere", "entity"), Query("q2", "x")]
    rankings = [Ranking("q1", (Hit("d1", 0.1 + 0.2), Hit("d2", -1e-30))), Ranking("q2", ())]
    assert from_work(as_work(queries, rankings)) == (queries, rankings)
