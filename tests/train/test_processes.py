from types import SimpleNamespace

import pytest
from accelerate.data_loader import BatchSamplerShard
from torch.utils.data import BatchSampler

from secondlook.encode.type_classifier import TypeClassifier
from secondlook.errors import SecondlookError
from secondlook.model.checkpoint import TYPES
from secondlook.train.course import Course
from secondlook.train.processes import join, share
from secondlook.train.ranker import types_of
from secondlook.train.settings import AdaptPhase


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


def test_processes_share_the_examples_of_all_epochs(monkeypatch):
    settings = AdaptPhase(corpus="corpus.jsonl", epochs=5, batch=32, at_once=16)
    alone = Course.of(settings, 3200)
    assert (alone.steps, alone.shown) == (500, 16_000)
    monkeypatch.setenv("WORLD_SIZE", "2")
    shared = Course.of(settings, 3200)
    assert (shared.steps, shared.shown) == (250, 16_000)
    batches = BatchSampler(range(shared.shown), shared.batch, drop_last=False)
    own = BatchSamplerShard(batches, num_processes=2, process_index=1)  # as Trainer reads them
    assert len(own) == shared.steps


def test_no_process_writes_the_type_classifier_that_another_one_reads(tmp_path, monkeypatch):
    load, read = TypeClassifier.load, []

    def watched(path):
        read.append(path)
        if len(read) == 1:
            types_of(model, tmp_path)  # as another process does while this one reads
        return load(path)

    TypeClassifier.train([("who", "person"), ("where", "location")]).save(tmp_path / "made")
    model = SimpleNamespace(files={TYPES: (tmp_path / "made").read_bytes()})
    (tmp_path / "made").unlink()
    monkeypatch.setattr(TypeClassifier, "load", watched)
    assert types_of(model, tmp_path).predict(["where"]) == ["location"]
    assert len(set(read)) == 2
    assert not list(tmp_path.iterdir())


def test_sharded_weights_are_refused_before_anything_waits_for_ever(monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")  # what `accelerate launch` sets
    with pytest.raises(SecondlookError, match="without use_fsdp"):
        join("cpu")
