"""Files reach the disk on every operating system."""

import errno
import os
from types import SimpleNamespace

import pytest

from secondlook.data import durable
from secondlook.errors import Unwritable

fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def windows(monkeypatch):
    """What Windows refuses: to open a folder, and to sync what was opened for reading only."""

    def open_file(path, flags):
        if path.is_dir():
            raise PermissionError(errno.EACCES, "a folder", path)
        return os.open(path, flags)

    def fsync(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "not opened for writing")
        os.fsync(handle)

    flags = {"O_RDONLY": os.O_RDONLY, "O_RDWR": os.O_RDWR}
    there = SimpleNamespace(name="nt", open=open_file, fsync=fsync, close=os.close, **flags)
    monkeypatch.setattr(durable, "os", there)


@pytest.mark.usefixtures("windows")
def test_a_file_is_written_on_windows(tmp_path):
    for text in ("old", "new"):
        durable.write_at_once(tmp_path / "small", text)
    assert (tmp_path / "small").read_text() == "new"


def test_elsewhere_a_file_that_may_only_be_read_is_synced_too(tmp_path, monkeypatch):
    path = tmp_path / "weights"
    path.write_text("linked from another folder")
    path.chmod(0o444)
    opened, open_file = [], os.open
    monkeypatch.setattr(os, "open", lambda *given: opened.append(given) or open_file(*given))
    durable.sync(path)
    assert opened == [(path, os.O_RDONLY)]  # for writing, only root could open it


def test_what_another_target_with_a_longer_name_leaves_is_its_own(tmp_path):
    with durable.replacing_file(tmp_path / "corpus.jsonl.gz") as half:
        half.write_text("half of it")
        with durable.replacing_file(tmp_path / "corpus.jsonl") as other:
            other.write_text("whole")
        assert half.read_text() == "half of it"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", "corpus.jsonl.gz"]


def test_what_an_interrupted_job_left_permits_nobody_to_overwrite(tmp_path):
    output = tmp_path / "run.trec"
    output.write_text("hours of work")
    (tmp_path / ".run.trec.partial").write_text("of another job")
    with pytest.raises(Unwritable, match="already exists"):
        durable.refuse_to_overwrite(output, replace=False)
    durable.refuse_to_overwrite(output, replace=True)
