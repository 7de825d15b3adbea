import os

import pytest
import torch
from accelerate.state import AcceleratorState

from secondlook.train import arguments as module
from secondlook.train.arguments import readers, training_arguments
from secondlook.train.phase import Place


def test_one_process_trains_on_one_gpu_of_several(tmp_path, monkeypatch):
    """On several, Trainer would run copies of the network that share layers with the original."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.set_device", lambda device: None)
    place = Place(tmp_path, seed=7)
    try:
        arguments = training_arguments(
            place,
            place.run,
            torch.device("cuda"),
            steps=5,
            warmup=0.1,
            per_device_train_batch_size=8,
        )
        assert arguments.device == torch.device("cuda:0")
        assert (arguments.n_gpu, arguments.train_batch_size) == (1, 8)
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)  # no other test has these GPUs


@pytest.mark.parametrize(
    ("device", "cores", "trainings", "start", "expected"),
    [
        ("cuda", 16, 1, "fork", 4),
        ("cuda", 3, 1, "fork", 2),
        ("cuda", 16, 8, "fork", 1),
        ("cuda", 1, 2, "fork", 0),
        ("cuda", 16, 1, "forkserver", 0),
        ("cpu", 16, 1, "fork", 0),
    ],
)
def test_cores_that_a_gpu_leaves_free_read_ahead(
    device, cores, trainings, start, expected, monkeypatch
):
    monkeypatch.setattr(module, "get_start_method", lambda allow_none: start)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores), raising=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(trainings))
    assert readers(torch.device(device)) == expected
