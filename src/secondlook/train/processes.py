"""A training may be many processes, started by torchrun: the first writes, the others wait."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from accelerate import PartialState

from secondlook.data.durable import write_at_once
from secondlook.errors import SecondlookError

if TYPE_CHECKING:
    from pathlib import Path

_PATIENCE = timedelta(days=2)  # a phase that only the first process runs can take hours


def join(device: str | None) -> None:
    """Meet the other processes, where there are any. Raises SecondlookError under FSDP."""
    if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true":
        # Decision 0161: it gathers weights at every forward, and processes make unlike numbers.
        raise SecondlookError(
            "training runs a whole network on every device, and not under FSDP: take "
            "`torchrun --nproc-per-node N -m secondlook train …`, or `accelerate launch "
            "--multi_gpu`, without use_fsdp; lower backward_tokens where memory is short"
        )
    if count() > 1:
        PartialState(cpu=device == "cpu", timeout=_PATIENCE)


def rank() -> int:
    """Which one this is, from 0."""
    return int(os.environ.get("RANK", "0"))


def first() -> bool:
    """Whether this process is the one that writes."""
    return rank() == 0


def count() -> int:
    """How many there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def wait() -> None:
    """Until every process is here."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def gather(own: list[float]) -> list[list[float]]:
    """What each process has, by rank; every process gets all of it."""
    if count() == 1:
        return [own]
    everyone: list[list[float]] = [[] for _ in range(count())]
    torch.distributed.all_gather_object(everyone, own)
    return everyone


def share(batch: int, kept: Path) -> int:
    """How many examples of a step this process takes, of a run that may go on after others' work.

    Begun, a run has `batch` examples (of ranking phases: queries) per step and process. Continued
    by more processes or fewer, its steps stay as large as they were, so that they see the same
    examples at the same learning rate.
    `kept` is the file that remembers. Raises SecondlookError where a step cannot be shared out.
    """
    if first() and not kept.is_file():
        write_at_once(kept, json.dumps({"queries_per_step": batch * count()}))
    wait()
    whole: int = json.loads(kept.read_text("utf-8"))["queries_per_step"]
    if whole % count():
        raise SecondlookError(
            f"this run has {whole} examples in a step, which {count()} processes cannot share "
            f"evenly; continue it with a number of processes that divides {whole}"
        )
    return whole // count()
