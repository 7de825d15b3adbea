import pytest

from secondlook.data import read_run
from secondlook.data.partial import PartialRun
from secondlook.types import Hit, Ranking

RANKINGS = [Ranking.of(str(n), [Hit("a", n / 3), Hit("b", 0.1)]) for n in range(5)]
JOB = {"run": "sha256:1", "depth": 10}


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
