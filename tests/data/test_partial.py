import pytest

from secondlook.data import partial, read_run
from secondlook.data.partial import PartialRun
from secondlook.types import Hit, Ranking

RANKINGS = [Ranking.of(str(n), [Hit("a", n / 3), Hit("b", 0.1)]) for n in range(5)]
JOB = {"run": "sha256:1", "depth": 10}


@pytest.fixture(autouse=True)
def saved_at_once(monkeypatch):
    monkeypatch.setattr(partial, "SECONDS_BETWEEN_SAVES", 0)


@pytest.mark.parametrize("name", ["out.trec", "out.trec.gz"])
def test_a_run_in_one_go(tmp_path, name):
    run = PartialRun(tmp_path / name, JOB)
    run.add(RANKINGS[:2])
    run.add(RANKINGS[2:])
    assert not (tmp_path / name).exists()
    run.finish()
    single = [[round(hit.score, 6) for hit in r.hits] for r in RANKINGS]
    made = list(read_run(tmp_path / name))
    assert [[round(hit.score, 6) for hit in r.hits] for r in made] == single
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_same_job_goes_on_where_it_stopped(tmp_path):
    target = tmp_path / "out.trec"
    PartialRun(target, JOB).add(RANKINGS[:2])
    with (tmp_path / ".out.trec.partial").open("ab") as lines:
        lines.write(b"2 Q0 a 1 0.6")  # killed in the middle of a line
    again = PartialRun(target, JOB)
    assert again.finished == 2
    again.add(RANKINGS[2:])
    again.finish()
    assert [r.query_id for r in read_run(target)] == ["0", "1", "2", "3", "4"]


def test_another_job_begins_anew(tmp_path):
    target = tmp_path / "out.trec"
    PartialRun(target, JOB).add(RANKINGS[:2])
    other = PartialRun(target, JOB | {"depth": 20})
    assert other.finished == 0
    other.add(RANKINGS[3:])
    other.finish()
    assert [r.query_id for r in read_run(target)] == ["3", "4"]


def test_a_kill_between_the_lines_and_their_count_repeats_one_batch(tmp_path):
    target = tmp_path / "out.trec"
    run = PartialRun(target, JOB)
    run.add(RANKINGS[:2])
    state = (tmp_path / ".out.trec.partial.json").read_text()
    run.add(RANKINGS[2:3])
    (tmp_path / ".out.trec.partial.json").write_text(state)
    again = PartialRun(target, JOB)
    assert again.finished == 2
    again.add(RANKINGS[2:])
    again.finish()
    assert [r.query_id for r in read_run(target)] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "damaged", ["", "{", "[]", "null", '{"job": {}}', '{"finished": "x", "bytes": 1, "job": {}}']
)
def test_a_damaged_count_begins_anew(tmp_path, damaged):
    target = tmp_path / "out.trec"
    PartialRun(target, JOB).add(RANKINGS[:2])
    (tmp_path / ".out.trec.partial.json").write_text(damaged)
    assert PartialRun(target, JOB).finished == 0


def test_lines_that_are_fewer_than_counted_begin_anew(tmp_path):
    target = tmp_path / "out.trec"
    PartialRun(target, JOB).add(RANKINGS[:2])
    (tmp_path / ".out.trec.partial").write_bytes(b"0 Q0 a 1")
    again = PartialRun(target, JOB)
    assert again.finished == 0
    again.add(RANKINGS)
    again.finish()
    assert [r.query_id for r in read_run(target)] == ["0", "1", "2", "3", "4"]


def test_a_job_that_names_tuples_goes_on_too(tmp_path):
    target = tmp_path / "out.trec"
    PartialRun(target, JOB | {"draw": (1, 2)}).add(RANKINGS[:2])
    assert PartialRun(target, JOB | {"draw": (1, 2)}).finished == 2


def test_fast_batches_share_a_save(tmp_path, monkeypatch):
    monkeypatch.setattr(partial, "SECONDS_BETWEEN_SAVES", 3600)
    run = PartialRun(tmp_path / "out.trec", JOB)
    run.add(RANKINGS[:2])
    assert run.finished == 0
    run.add(RANKINGS[2:])
    run.finish()
    assert len(list(read_run(tmp_path / "out.trec"))) == 5


def test_what_did_not_fit_onto_a_full_disk_is_written_again(tmp_path, monkeypatch):
    target = tmp_path / "out.trec"
    run = PartialRun(target, JOB)
    run.add(RANKINGS[:2])
    with monkeypatch.context() as full:
        full.setattr(partial.os, "fsync", _full)  # the lines are in the file, and not counted
        with pytest.raises(OSError, match="No space"):
            run.add(RANKINGS[2:])
    run.finish()
    assert [r.query_id for r in read_run(target)] == ["0", "1", "2", "3", "4"]


def _full(_):
    raise OSError(28, "No space left on device")
