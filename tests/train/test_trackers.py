"""A tracker that cannot be reported to is refused before anything is computed."""

from __future__ import annotations

import pytest
from transformers.integrations import integration_utils

import secondlook as sl
from secondlook.errors import SecondlookError, UnknownName
from secondlook.train.trackers import refuse_unusable


def test_a_misspelt_tracker_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="did you mean 'tensorboard'"):
        refuse_unusable(["tensorbord"])


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr(integration_utils, "is_wandb_available", lambda: False)
    with pytest.raises(SecondlookError, match="wandb is not installed"):
        refuse_unusable(["wandb"])


def test_tune_and_train_say_so_at_once_and_leave_nothing(tmp_path):
    with pytest.raises(UnknownName, match="experiment tracker"):
        sl.tune(tmp_path / "no data", tmp_path / "tuned", report_to=["tensorbord"])
    with pytest.raises(UnknownName, match="experiment tracker"):
        sl.train_ranker("none.toml", tmp_path / "ranker", report_to=["tensorbord"])
    assert not list(tmp_path.iterdir())
