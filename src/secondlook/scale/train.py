"""Training by the workers of a Ray cluster, who meet as the processes of torchrun do."""

from __future__ import annotations

from shutil import rmtree
from typing import TYPE_CHECKING

from secondlook.errors import EngineProblem, SecondlookError
from secondlook.scale.ray_job import connected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PATIENCE = 2 * 24 * 3600  # seconds: a phase that only the first process runs can take hours


def train_together(
    address: str, processes: int, train: Callable[[], None], *, device: str | None, scratch: Path
) -> None:
    """Call `train` in so many processes on the cluster at once, each with a GPU where there are.

    It is sent there by its name: secondlook must be installed on all nodes, and the same folders be
    there. `scratch` is for Ray's own notes, and gone in the end. What `train` raises is raised.
    """
    with connected(address) as ray:
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        there = ray.cluster_resources()
        gpus = device == "cuda" or (device is None and there.get("GPU", 0) >= processes)
        if there.get("GPU" if gpus else "CPU", 0) < processes:
            raise EngineProblem(
                f"{processes} processes need as many {'GPUs' if gpus else 'cores'}, and the Ray "
                f"cluster has {there.get('GPU' if gpus else 'CPU', 0):g}; give fewer processes"
            )
        trainer = TorchTrainer(
            train,
            scaling_config=ScalingConfig(num_workers=processes, use_gpu=gpus),
            run_config=RunConfig(name="train", storage_path=str(scratch)),
            torch_config=TorchConfig(timeout_s=_PATIENCE),
        )
        try:
            trainer.fit()
        except Exception as error:  # Ray's own classes differ from version to version
            raise _reason(error) from error
        finally:
            rmtree(scratch, ignore_errors=True)


def _reason(error: Exception) -> SecondlookError:
    """What a worker complained of, or that it was lost."""
    for failure in getattr(error, "worker_failures", {}).values():
        cause = getattr(failure, "cause", None) or failure.__cause__ or failure
        if isinstance(cause, SecondlookError):
            return cause
    return EngineProblem(
        f"training on the Ray cluster ended early ({error}); what is saved stays: the same with "
        "`resume=True` goes on"
    )
