import os
import signal
import socket

import pytest

from command_line import writing
from secondlook.data import write_run
from secondlook.data.durable import write_at_once
from secondlook.data.lines import write_lines
from secondlook.data.lock import Hold, left_by, locked
from secondlook.data.partial import PartialLines
from secondlook.errors import OutputInUse, Unwritable


@pytest.fixture
def holder(tmp_path):
    with writing(tmp_path / "out") as process:
        yield process


def test_a_second_writer_is_told_who_the_first_is(tmp_path, holder):
    who = f"process {holder.pid} on {socket.gethostname()}"
    for write in (
        lambda: write_lines(tmp_path / "out", ["a"]),
        lambda: write_run(tmp_path / "out", [], "trec"),
        lambda: PartialLines(tmp_path / "out", {}),
    ):
        with pytest.raises(OutputInUse, match=who):
            write()
    assert [path.name for path in tmp_path.iterdir()] == [".out.lock"]
    holder.communicate()
    write_lines(tmp_path / "out", ["a"])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_other_outputs_of_the_folder_are_free(tmp_path, holder):
    write_lines(tmp_path / "other", ["a"])
    write_at_once(tmp_path / "small", "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.lock", "other", "small"]


def test_the_lock_of_a_killed_process_stops_nobody(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (tmp_path / ".out.lock").exists()
    (tmp_path / ".out.12345678.half").write_text("half")
    write_lines(tmp_path / "out", ["a"])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_parts_of_one_piece_of_work_share_the_lock(tmp_path):
    with locked(tmp_path / "out"):
        hold = Hold(tmp_path / "out", "")
        assert not hold.is_first
        hold.release()
        hold.release()
        assert (tmp_path / ".out.lock").exists()
    assert not list(tmp_path.iterdir())


def test_a_part_of_longer_work_removes_what_a_killed_process_left(tmp_path):
    (tmp_path / ".out.12345678.half").write_text("half")
    with locked(tmp_path / "out") as whole:
        write_lines(tmp_path / "out", ["a"])
        assert not whole.first_to_clear((tmp_path / "out").resolve())  # halves may now be ours
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_whole_or_nothing_says_that_nothing_changed(tmp_path):
    with pytest.raises(ZeroDivisionError) as failed:
        write_lines(tmp_path / "out", (1 / 0 for _ in [0]))
    assert "out is as it was" in left_by(failed.value)


def test_what_goes_on_later_says_so(tmp_path):
    partial = PartialLines(tmp_path / "out", {})
    assert "the same command goes on" in left_by(KeyboardInterrupt())
    del partial
    assert left_by(KeyboardInterrupt()) == ""


def test_of_work_within_work_the_outermost_speaks(tmp_path):
    with (
        pytest.raises(KeyboardInterrupt) as pressed,
        locked(tmp_path / "folder", "folder goes on"),
        locked(tmp_path / "file"),
    ):
        raise KeyboardInterrupt
    assert left_by(pressed.value) == "folder goes on"


def test_a_hold_ends_with_its_object(tmp_path):
    hold = Hold(tmp_path / "out", "")
    del hold
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Unwritable, match="nowhere"):
        write_lines(tmp_path / "nowhere" / "out", ["a"])
