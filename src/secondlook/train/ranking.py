"""The phases that learn from groups: pointwise, listwise, pairwise, distil."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import EarlyStoppingCallback, TrainerState, TrainingArguments
from transformers.utils import logging

from secondlook.data.durable import write_at_once
from secondlook.encode.encoder import Encoder
from secondlook.errors import SecondlookError, UnknownName
from secondlook.model.joint import Joint
from secondlook.model.warm import Warm
from secondlook.score.torch_backend import device_of
from secondlook.train import losses, processes
from secondlook.train.batches import DrawnGroups, EncodeGroups, Order
from secondlook.train.deadline import StopsAt
from secondlook.train.draw import Draw, Usable, usable
from secondlook.train.groups import Groups
from secondlook.train.log_odds import into_log_odds
from secondlook.train.phase import Outcome
from secondlook.train.ranker import precision_of, ranker_of, types_of
from secondlook.train.settings import (
    AdaptPhase,
    DistilPhase,
    ListwisePhase,
    PairwisePhase,
    PointwisePhase,
    RankingPhase,
)
from secondlook.train.states import last_whole, whole
from secondlook.train.trainer import GroupTrainer, Learning
from secondlook.train.validation import Validation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from secondlook.model.network import Model
    from secondlook.train.batches import EncodedGroup
    from secondlook.train.phase import Place, TrainData

_LOGS = 100  # points of the loss curve
_VALIDATIONS = 10


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a phase will go through."""

    groups: Groups
    found: Usable
    draw: Draw
    steps: int


def lesson(settings: RankingPhase, data: TrainData, seed: int) -> Lesson:
    """Find what there is to learn from; reads no texts."""
    if not data.train:
        raise SecondlookError(
            f"the phase {settings.phase!r} has no training data; name group files in the recipe: "
            '[data] train = ["train.parquet"]'
        )
    soft = isinstance(settings, DistilPhase) and settings.loss == "kl"
    draw = Draw(settings.positives, settings.negatives, seed=f"{seed}\0{settings.phase}", fill=soft)
    groups = Groups(_chosen(settings, data))
    found = usable(groups, draw, teacher=isinstance(settings, DistilPhase), labels=not soft)
    per_epoch = ceil(len(found.rows) / (settings.batch * processes.count()))
    steps = settings.max_steps or ceil(settings.epochs * per_epoch)
    return Lesson(groups, found, draw, steps)


def _chosen(settings: RankingPhase, data: TrainData) -> list[Path]:
    """The files the phase names, in the order of the data."""
    for name in settings.only:
        if name not in [path.name for path in data.train]:
            raise UnknownName(
                f"file for the phase {settings.phase!r}", name, [path.name for path in data.train]
            )
    return [path for path in data.train if not settings.only or path.name in settings.only]


def run(settings: RankingPhase, start: Model, data: TrainData, place: Place) -> Outcome:
    """Train, validating on the way; the best weights are kept, the start's if none was better."""
    device = device_of(place.device)
    precision = precision_of(settings.precision, device)
    place.folder.mkdir(parents=True, exist_ok=True)
    own = processes.share(settings.batch, place.folder / "step.json")
    settings = settings.model_copy(update={"batch": own})
    plan = lesson(settings, data, place.seed)
    _say_unused(plan, place)
    types = types_of(start, place.folder)
    validation, measured = None, None
    if data.validate is not None:
        validation = Validation(
            Groups([data.validate]), settings.measure, settings.validate_queries
        )

        def measured() -> dict[str, float]:
            assert validation is not None
            return {validation.measure: validation(ranker_of(start, types, device, precision))}

    before = {name: weight.detach().clone() for name, weight in start.network.state_dict().items()}
    at_start = _measured_at_start(measured, place.folder / "start.json")
    drawn, order = DrawnGroups(plan.groups, plan.found, plan.draw), Order(plan.found, plan.draw)
    if isinstance(settings, PointwisePhase) and isinstance(start.network, Warm):
        scorer = ranker_of(start, types, device, precision)
        into_log_odds(start.network, scorer, (drawn[row] for row in order))
    with prepared(start, settings, device), verbosity_kept():
        trainer = GroupTrainer(
            start.network,
            Learning(
                settings, _loss(settings), measured, start.settings.encode.windows, place.watch
            ),
            _arguments(
                settings, plan, place, device, precision, validation.measure if validation else None
            ),
            (
                drawn,
                order,
                EncodeGroups(Encoder(start.tokenizer, start.settings.encode, types=types)),
            ),
        )
        if measured is not None and settings.patience is not None:
            trainer.add_callback(EarlyStoppingCallback(settings.patience))
        if place.deadline is not None:
            trainer.add_callback(StopsAt(place.deadline, place.watch))
        state = _train(trainer, place, plan.steps)
    return _outcome(start, data, place, _Run(plan, state, before, at_start))


def validate_every(settings: RankingPhase, steps: int) -> int:
    """After how many steps the ranker is validated and the run saved."""
    return settings.validate_every or max(1, steps // _VALIDATIONS)


@contextmanager
def prepared(
    model: Model, settings: RankingPhase | AdaptPhase, device: torch.device
) -> Iterator[None]:
    """The network as it is trained: dropout, frozen parts, and the attention that trains fastest.

    On a CPU that is the plain one: the fused kernels were slower under bf16 (docs/decisions/0071).
    """
    network = model.network
    encoder: Any = network.classifier if isinstance(network, Joint) else network.encoder
    with in_training(network, encoder, settings.dropout, device):
        if settings.freeze_embeddings:
            if model.settings.encode.markers is not None:
                raise SecondlookError(
                    "markers are new words, whose embeddings are to be learnt; set "
                    "freeze_embeddings to false"
                )
            encoder.get_input_embeddings().requires_grad_(requires_grad=False)
        yield


@contextmanager
def in_training(
    network: nn.Module,
    encoder: Any,  # noqa: ANN401 - a PreTrainedModel, which mypy loses track of
    dropout: float,
    device: torch.device,
) -> Iterator[None]:
    """The network with this dropout; what is frozen meanwhile is as before in the end."""
    trainable = {name: weight.requires_grad for name, weight in network.named_parameters()}
    attention = encoder.config._attn_implementation
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        elif isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = dropout  # type: ignore[assignment]
    if device.type == "cpu":
        encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        encoder.set_attn_implementation(attention)
        for name, weight in network.named_parameters():
            weight.requires_grad_(trainable[name])
        network.eval()


def _loss(settings: RankingPhase) -> Callable[[Tensor, EncodedGroup], Tensor]:
    """The loss of one group under these settings."""

    def cost(scores: Tensor, group: EncodedGroup) -> Tensor:
        grades = torch.tensor(group.labels, device=scores.device)
        positive = grades > 0
        if isinstance(settings, PointwisePhase):
            return losses.pointwise(scores, positive)
        if isinstance(settings, ListwisePhase):
            if settings.graded:
                return losses.graded_listwise(scores, 2.0 ** grades.clamp(min=0) - 1)
            return losses.listwise(scores, positive)
        if isinstance(settings, PairwisePhase):
            if settings.loss == "hinge":
                return losses.hinge(scores, positive, settings.margin)
            return losses.ranknet(scores, positive)
        assert isinstance(settings, DistilPhase)
        teacher = torch.tensor(group.teacher, dtype=scores.dtype, device=scores.device)
        if settings.loss == "kl":
            return losses.kl(scores, teacher, settings.temperature)
        return losses.margin_mse(scores, positive, teacher)

    return cost


def _arguments(
    settings: RankingPhase,
    plan: Lesson,
    place: Place,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    measure: str | None,
) -> TrainingArguments:
    every = validate_every(settings, plan.steps)
    return TrainingArguments(
        output_dir=str(place.run.resolve()),
        per_device_train_batch_size=settings.batch,
        max_steps=plan.steps,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup if settings.warmup * plan.steps >= 1 else 0,
        lr_scheduler_type=settings.schedule,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        optim="adamw_torch_fused",
        bf16=precision == "bf16",
        use_cpu=device.type == "cpu",
        eval_strategy="steps" if measure else "no",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        metric_for_best_model=measure,
        greater_is_better=True,
        restore_callback_states_from_checkpoint=True,
        logging_steps=max(1, plan.steps // _LOGS),
        logging_nan_inf_filter=False,
        log_level="error",
        disable_tqdm=True,
        report_to=list(place.report_to) or "none",
        remove_unused_columns=False,
        dataloader_pin_memory=device.type == "cuda",
        # Sent around at every forward otherwise, and processes cut a step into different numbers
        # of forwards: one would wait for ever. No buffer of an encoder changes.
        ddp_broadcast_buffers=False,
        seed=place.seed,
    )


def _train(trainer: GroupTrainer, place: Place, steps: int) -> TrainerState:
    """Train to the end, from where a killed run was; leave the best weights in the network."""
    last, state = last_whole(place.run)
    place.watch.begin("training", steps, done=state.global_step if state else 0)
    if trainer.average and last and state:
        trainer.average.load(last, state.global_step)
    if state is None or not _ended(state, steps):
        trainer.train(resume_from_checkpoint=str(last) if last else None)
        state = trainer.state
    best = Path(state.best_model_checkpoint or whole(place.run)[-1])
    trainer.network.load_state_dict(load_file(best / "model.safetensors"))
    if trainer.average:
        trainer.average.load(best, state.global_step)
        trainer.average.into_network()
    return state


def _ended(state: TrainerState, steps: int) -> bool:
    """Whether the saved state is that of a run that was over: all steps done, or stopped early."""
    states: Any = state.stateful_callbacks or {}
    control = states.get("TrainerControl", {})
    stopped = control.get("args", {}).get("should_training_stop", False)
    return bool(stopped) or state.global_step >= steps


@dataclass(frozen=True, slots=True)
class _Run:
    plan: Lesson
    state: TrainerState
    before: dict[str, Tensor]
    at_start: dict[str, float]


def _outcome(start: Model, data: TrainData, place: Place, run: _Run) -> Outcome:
    steps = run.state.global_step
    history = [{"step": 0.0} | run.at_start] if run.at_start else []
    shown = {"loss": "loss"} | {f"eval_{name}": name for name in run.at_start}
    history += [
        {"step": float(logged["step"]), shown[name]: float(logged[name])}
        for logged in run.state.log_history
        for name in shown
        if name in logged
    ]
    metrics = {"steps": float(steps), "queries": float(len(run.plan.found.rows))}
    void = {"calibration": None, "fusion": None}  # they were fitted to other scores
    trained = start.settings.model_copy(update={"trained": True} | void)
    model = replace(start, settings=trained)
    for name, was in run.at_start.items():
        best = run.state.best_metric
        assert best is not None
        metrics |= {name: best, f"{name} at the start": was}
        if best <= was and start.settings.trained:
            place.watch.say(
                f"{'WORSE' if best < was else 'NO BETTER'} THAN THE START: {name} was {was:.4f} "
                f"and came to {best:.4f} at best, so the start is kept. Try a lower learning_rate, "
                "more or harder negatives, or more queries to validate on"
            )
            start.network.load_state_dict(run.before)
            metrics |= {name: was, f"{name} of the rejected training": best}
            model = start
        elif best <= was:
            place.watch.say(
                f"the ranker is no better than untrained: {name} {best:.4f}, at the start {was:.4f}"
            )
    processes.wait()  # all have read the best weights, which the first may remove now
    learned = {path.name: Groups([path]).fingerprint for path in run.plan.groups.paths}
    return Outcome(model, data, learned, metrics, tuple(history), labels=run.plan.groups.labels)


def _measured_at_start(
    measured: Callable[[], dict[str, float]] | None, kept: Path
) -> dict[str, float]:
    """The start's figure; kept, so that a resume need not measure it again."""
    if measured is None:
        return {}
    if not kept.is_file():
        write_at_once(kept, json.dumps(measured()))
    read: dict[str, float] = json.loads(kept.read_text("utf-8"))
    return read


def _say_unused(plan: Lesson, place: Place) -> None:
    unused = len(plan.groups) - len(plan.found.rows)
    if unused:
        place.watch.say(
            f"{unused:,} of {len(plan.groups):,} queries have nothing to compare (no positive, no "
            "negative, or no teacher's scores) and are left out"
        )


@contextmanager
def verbosity_kept() -> Iterator[None]:
    """Trainer sets the verbosity of all of transformers; it is set back here, as are warnings."""
    untyped: Any = logging
    verbosity = untyped.get_verbosity()
    with warnings.catch_warnings():
        try:
            yield
        finally:
            untyped.set_verbosity(verbosity)
