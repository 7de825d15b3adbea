import pytest

from secondlook.errors import SecondlookError
from secondlook.train.processes import join, share


def test_a_step_keeps_its_size_whoever_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert share(8, tmp_path / "step.json") == 8
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert share(8, tmp_path / "step.json") == 32
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert share(8, tmp_path / "step.json") == 16


def test_a_step_that_cannot_be_shared_evenly_is_refused(tmp_path, monkeypatch):
    share(8, tmp_path / "step.json")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(SecondlookError, match="divides 8"):
        share(8, tmp_path / "step.json")


def test_sharded_weights_are_refused_before_anything_waits_for_ever(monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")  # what `accelerate launch` sets
    with pytest.raises(SecondlookError, match="without use_fsdp"):
        join("cpu")
