"""What every training tells transformers' Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import TrainingArguments

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from secondlook.train.phase import Place


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
