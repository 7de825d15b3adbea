"""A training may be many processes, started by torchrun: the first writes, the others wait."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
from accelerate import PartialState

_PATIENCE = timedelta(days=2)  # a phase that only the first process runs can take hours


def join(device: str | None) -> None:
    """Meet the other processes, where there are any."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        PartialState(cpu=device == "cpu", timeout=_PATIENCE)


def first() -> bool:
    """Whether this process is the one that writes."""
    return int(os.environ.get("RANK", "0")) == 0


def wait() -> None:
    """Until every process is here."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
