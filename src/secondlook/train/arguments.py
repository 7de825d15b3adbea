"""What every training tells transformers' Trainer."""

from __future__ import annotations

import os
from multiprocessing import get_all_start_methods, get_start_method
from typing import TYPE_CHECKING, Any

from transformers import TrainingArguments

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from secondlook.train.phase import Place


_READERS = 4


def readers(device: torch.device) -> int:
    """How many processes read and encode the next steps while a GPU trains.

    None beside a training on a CPU, which wants all cores, nor where a process starts without a
    copy of this one's memory (not Linux, or Python 3.14): an encoder cannot be sent there.
    """
    start = get_start_method(allow_none=True) or get_all_start_methods()[0]
    if device.type != "cuda" or start != "fork":
        return 0
    trainings = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(0, min(_READERS, len(os.sched_getaffinity(0)) // trainings - 1))


def training_arguments(
    place: Place,
    run: Path,
    device: torch.device,
    *,
    steps: int,
    warmup: float,
    **own: Any,  # noqa: ANN401 - as TrainingArguments takes them
) -> TrainingArguments:
    """The arguments of a training of so many steps, saved in `run`; `own` are its further ones."""
    arguments = TrainingArguments(
        output_dir=str(run.resolve()),
        max_steps=steps,
        warmup_steps=warmup if warmup * steps >= 1 else 0,
        optim="adamw_torch_fused",
        use_cpu=device.type == "cpu",
        save_strategy="steps",
        save_total_limit=2,
        log_level="error",
        disable_tqdm=True,
        report_to=list(place.report_to) or "none",
        remove_unused_columns=False,
        dataloader_pin_memory=device.type == "cuda",
        seed=place.seed,
        **own,
    )
    # A process that sees several GPUs would train by nn.DataParallel: steps of several times the
    # batch, and copies of our networks that call the first GPU's layers. No argument says so.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments
