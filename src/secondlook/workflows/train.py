"""Training of a re-ranker by a recipe: here, or by the workers of a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondlook.errors import WrongArgument
from secondlook.progress import Unwatched, as_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secondlook.model.settings import RankerSettings
    from secondlook.progress import Progress, ProgressCallback, Watch
    from secondlook.train.estimate import Plan
    from secondlook.train.run import Job


@dataclass(frozen=True, slots=True)
class TrainResult:
    """A re-ranker that was trained, and its settings, with the lineage."""

    ranker: Path
    settings: RankerSettings

    def summary(self) -> str:
        """The base, and the phases with their figures."""
        lineage = self.settings.lineage
        phases = (f"{p.name}: {p.figures}" if p.figures else p.name for p in lineage.phases)
        return "\n  ".join([f"{self.ranker}: trained from {lineage.base}", *phases])

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        phases = [phase.model_dump() for phase in self.settings.lineage.phases]
        return {"ranker": str(self.ranker), "phases": phases}


def train(
    recipe: str | Path,
    output: str | Path,
    *,
    base: str | Path | None = None,
    data: str | Path | None = None,
    resume: bool = False,
    device: str | None = None,
    report_to: Sequence[str] = (),
    ray: str | None = None,
    processes: int = 1,
    progress: Progress | ProgressCallback | None = None,
) -> TrainResult:
    """Train a re-ranker in the phases of a recipe file, and write it to `output`.

    `base` overrides the recipe's base model; `data` is the folder of its data files, by default
    the recipe's own. With `resume`, an interrupted training goes on to the same result.
    `report_to` names experiment trackers (tensorboard, mlflow, wandb). With `ray`, an address or
    "local", so many `processes` train on that cluster, whose nodes see the same folders.

    >>> import secondlook as sl
    >>> sl.train_ranker("recipe.toml", "trained", base="intfloat/e5-small").ranker.name
    'trained'
    """
    from secondlook.model.checkpoint import open_checkpoint

    if processes > 1 and ray is None:
        raise WrongArgument(
            f"{processes} processes need `ray`; without Ray use: torchrun --nproc-per-node "
            f"{processes} -m secondlook train …"
        )
    given = _given(recipe, output, base, data, device, report_to, resume=resume)
    if ray is None:
        with as_progress(progress).training() as watch:
            given.train(watch)
    else:
        _on_ray(given, ray, processes, as_progress(progress))
    return TrainResult(given.output, open_checkpoint(given.output).settings)


def plan(
    recipe: str | Path,
    *,
    base: str | Path | None = None,
    data: str | Path | None = None,
    device: str | None = None,
    progress: Progress | ProgressCallback | None = None,
) -> Plan:
    """Estimate the time and memory of a training by trying a few steps; nothing is written."""
    from secondlook.train.estimate import estimate

    given = _given(recipe, "ranker", base, data, device)
    with as_progress(progress).training() as watch:
        return estimate(given.job(watch))


@dataclass(frozen=True, slots=True)
class _Arguments:
    """What a training was called with, as a worker of a cluster gets it too."""

    recipe: Path
    data: Path
    output: Path
    base: str | None
    device: str | None
    report_to: tuple[str, ...]
    resume: bool

    def job(self, watch: Watch) -> Job:
        from secondlook.train.recipe import read_recipe
        from secondlook.train.run import job

        return job(
            read_recipe(self.recipe),
            self.data,
            self.output,
            base=self.base,
            watch=watch,
            device=self.device,
            report_to=self.report_to,
        )

    def train(self, watch: Watch) -> None:
        from secondlook.train.run import train as run

        run(self.job(watch), resume=self.resume)


def _given(
    recipe: str | Path,
    output: str | Path,
    base: str | Path | None,
    data: str | Path | None,
    device: str | None,
    report_to: Sequence[str] = (),
    *,
    resume: bool = False,
) -> _Arguments:
    from secondlook.train.trackers import refuse_unusable

    refuse_unusable(report_to)
    return _Arguments(
        Path(recipe),
        Path(recipe).parent if data is None else Path(data),
        Path(output),
        None if base is None else str(base),
        device,
        tuple(report_to),
        resume,
    )


def _on_ray(given: _Arguments, address: str, processes: int, progress: Progress) -> None:
    """The same by workers of a cluster; the first one's messages go into a file."""
    from functools import partial

    from secondlook.scale.ray_job import reachable
    from secondlook.scale.train import train_together

    there = replace(
        given,
        recipe=given.recipe.absolute(),
        data=given.data.absolute(),
        output=given.output.absolute(),
        base=None if given.base is None else reachable(given.base),
    )
    log = there.output.with_name(f"{there.output.name}.work") / "train.log"
    given.job(Unwatched())  # what is wrong with it is said here, before anything starts
    with progress.training() as watch:
        watch.say(f"{processes} processes on Ray; progress is logged to {log}")
    train_together(
        address,
        processes,
        partial(_as_one_of_many, there, log),
        device=given.device,
        scratch=there.output.with_name(f".{there.output.name}.ray"),
    )


def _as_one_of_many(given: _Arguments, log: Path) -> None:
    """In a worker."""
    from secondlook.train import processes
    from secondlook.train.log import logged

    if not processes.first():
        given.train(Unwatched())
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, logged(file) as watch:
        given.train(watch)
