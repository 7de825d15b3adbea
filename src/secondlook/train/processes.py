"""A training may be many processes, started by torchrun: the first writes, the others wait."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
from accelerate import PartialState

_PATIENCE = timedelta(days=2)  # a phase that only the first process runs can take hours


def join(device: str | None) -> None:
    """Meet the other processes, where there are any."""
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
