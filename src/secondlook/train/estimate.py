"""What a recipe would do here, and how long that would take: found by doing a little of it."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from secondlook.encode.encoder import Encoder
from secondlook.score.torch_backend import device_of
from secondlook.train import ranking
from secondlook.train.batches import DrawnGroups, EncodeGroups, Order
from secondlook.train.groups import Groups
from secondlook.train.phase import Place, TrainData
from secondlook.train.phases import run_phase
from secondlook.train.ranker import precision_of, precision_of_ranking, ranker_of, types_of
from secondlook.train.run import begin, prepare_data
from secondlook.train.settings import RankingPhase
from secondlook.train.validation import Validation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secondlook.encode.type_classifier import TypeClassifier
    from secondlook.model.network import Model
    from secondlook.score.ranker import Ranker
    from secondlook.train.run import Job

_TRIED_STEPS = 4  # the first is not counted: it allocates
_SAMPLED_GROUPS = 32
_TRIED_QUERIES = 4
_TRIED_SECONDS = 20.0
"""About how long one phase is tried, and its validation; where that is too short, less is tried."""


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """One phase; what cannot be known before it runs is None."""

    phase: str
    queries: int | None = None
    steps: int | None = None
    pairs: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    validation_seconds: float | None = None
    bytes: int | None = None
    """The most memory seen while a few of its steps were tried."""

    def __str__(self) -> str:
        if self.phase == "warm":
            return "warm: at once"
        if self.steps is None:
            return f"{self.phase}: not estimated"
        assert self.seconds is not None
        text = (
            f"{self.phase}: {self.queries:,} queries, {self.steps:,} steps, {self.pairs:,} pairs, "
            f"{self.tokens:,} tokens; {_duration(self.seconds)}"
        )
        if self.validation_seconds:
            text += f" and {_duration(self.validation_seconds)} of validation"
        return f"{text}; {(self.bytes or 0) / 2**30:.1f} GiB of memory"


@dataclass(frozen=True, slots=True)
class Plan:
    """All phases, on this hardware."""

    base: str
    device: str
    threads: int
    precision: str
    weights: int
    phases: tuple[PhasePlan, ...]

    @property
    def seconds(self) -> float:
        """Of all phases that could be estimated."""
        return sum((p.seconds or 0) + (p.validation_seconds or 0) for p in self.phases)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self) | {"seconds": self.seconds}

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Each phase with its size, time and memory, and the whole time."""
        where = f"{self.device}, {self.threads} threads" if self.device == "cpu" else self.device
        lines = [f"{self.base}: {self.weights / 1e6:.1f}M weights, on {where}, {self.precision}"]
        lines += [f"{number}. {phase}" for number, phase in enumerate(self.phases, start=1)]
        return "\n".join([*lines, f"in all about {_duration(self.seconds)}"])


def estimate(job: Job) -> Plan:
    """Try a few steps of every phase that can be tried, and count the rest."""
    prepare_data(job)
    device = device_of(job.device)
    model = begin(job.recipe, job.base)
    return Plan(
        model.settings.lineage.base,
        str(device),
        torch.get_num_threads(),
        precision_of_ranking(job.recipe, device),
        sum(weight.numel() for weight in model.network.parameters()),
        tuple(
            _phase(job, phase, model, device)
            if isinstance(phase, RankingPhase)
            else PhasePlan(phase.phase)
            for phase in job.recipe.phases
        ),
    )


def _phase(job: Job, settings: RankingPhase, model: Model, device: torch.device) -> PhasePlan:
    plan = ranking.lesson(settings, job.data, job.recipe.seed)
    per_query = plan.found.documents / len(plan.found.rows)
    pairs = round(plan.steps * settings.batch * per_query)
    tokens = round(pairs * _tokens_per_pair(plan, model))
    step = _seconds_per_step(job, settings, model, device)
    memory = torch.cuda.max_memory_allocated() if device.type == "cuda" else _peak_memory()
    return PhasePlan(
        settings.phase,
        len(plan.found.rows),
        plan.steps,
        pairs,
        tokens,
        step * plan.steps,
        _validation_seconds(job, settings, model, device, plan.steps),
        memory,
    )


def _seconds_per_step(
    job: Job, settings: RankingPhase, model: Model, device: torch.device
) -> float:
    """Of a step with the whole batch; where that takes too long to try, by a smaller one.

    One query is tried first. A machine that needs seconds for it is no faster with many.
    """
    query = _tried(job, settings, model, device, batch=1, steps=2)
    whole_batch = int(_TRIED_SECONDS / _TRIED_STEPS / query)
    tried = max(1, min(settings.batch, whole_batch))
    if tried == 1 < settings.batch:
        return query * settings.batch
    return _tried(job, settings, model, device, tried, _TRIED_STEPS) * settings.batch / tried


def _tried(
    job: Job, settings: RankingPhase, model: Model, device: torch.device, batch: int, steps: int
) -> float:
    """Seconds of a step of this size."""
    job.watch.say(
        f"{settings.phase}: trying {steps} steps of {batch} quer{'y' if batch == 1 else 'ies'}"
    )
    clock = _Clock()
    with tempfile.TemporaryDirectory() as folder:
        few = settings.model_copy(
            update={"max_steps": steps, "batch": batch, "fit_score_scale": False}
        )
        place = Place(Path(folder), job.recipe.seed, str(device), clock)
        run_phase(few, model, TrainData(job.data.folder, job.data.train), place)
    return clock.seconds_per_step()


def _tokens_per_pair(plan: ranking.TrainingJob, model: Model) -> float:
    groups = DrawnGroups(plan.groups, plan.found, plan.draw)
    places = list(Order(plan.found, plan.draw))[:_SAMPLED_GROUPS]
    encode = EncodeGroups(Encoder(model.tokenizer, model.settings.encode, types=_types(model)))
    made = encode([groups[place] for place in places])["groups"]
    return sum(one.tokens for one in made) / sum(len(one.labels) for one in made)


def _types(model: Model) -> TypeClassifier | None:
    """The model's classifier of query types, where it has one."""
    with tempfile.TemporaryDirectory() as folder:
        return types_of(model, Path(folder))


def _validation_seconds(
    job: Job, settings: RankingPhase, model: Model, device: torch.device, steps: int
) -> float | None:
    if job.data.validate is None:
        return None
    groups = Groups([job.data.validate])
    whole = Validation(groups, settings.measure, settings.validate_queries)
    if not len(whole):  # no candidate is relevant, so that none is scored
        return 0.0
    precision = precision_of(settings.precision, device)
    ranker = ranker_of(model, _types(model), device, precision)
    job.watch.say(f"{settings.phase}: trying its validation")
    one = whole.first(1)
    pair = _seconds_per_pair(one, ranker)
    if pair * len(one) * _TRIED_QUERIES < _TRIED_SECONDS:
        pair = _seconds_per_pair(whole.first(_TRIED_QUERIES), ranker)
    return pair * len(whole) * validations(settings, steps)


def _seconds_per_pair(some: Validation, ranker: Ranker) -> float:
    began = time.perf_counter()
    some(ranker)
    return (time.perf_counter() - began) / max(1, len(some))


def validations(settings: RankingPhase, steps: int) -> int:
    """How often a phase of so many steps is validated: at the start, and after every so many.

    Once more where the average of the weights is validated at the end.
    """
    return 1 + ceil(steps / ranking.validate_every(settings, steps)) + bool(settings.average)


class _Clock:
    """Notes when each step ended."""

    def __init__(self) -> None:
        self._ends: list[float] = []

    def begin(self, doing: str, total: int, *, done: int = 0) -> None:
        """The first step begins."""
        self._ends = [time.perf_counter()]

    def step(self, items: int, figures: Mapping[str, float]) -> None:
        """A step ended."""
        self._ends.append(time.perf_counter())

    def say(self, message: str) -> None:
        """The run itself will say it."""

    def seconds_per_step(self) -> float:
        """The mean, without the first where there are more."""
        ends = self._ends[1:] if len(self._ends) > 2 else self._ends
        return (ends[-1] - ends[0]) / (len(ends) - 1)


def _peak_memory() -> int:
    """Of this process, in bytes; 0 on Windows, which does not say."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
