import pytest

from secondlook.score.cores import threads, usable_cores


@pytest.mark.parametrize("told", ["1", "1,4", " 1 "])
def test_a_process_that_is_told_its_share_takes_no_more(monkeypatch, told):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert threads() == 1


@pytest.mark.parametrize("told", ["", "0", "many", "100000"])
def test_else_it_takes_a_thread_for_each_usable_core(monkeypatch, told):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert threads() == max(1, int(usable_cores() or 1))
