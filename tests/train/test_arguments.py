import torch
from accelerate.state import AcceleratorState

from secondlook.train.arguments import training_arguments
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
