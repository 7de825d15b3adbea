"""The phases that learn from groups, each by its loss."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from safetensors.torch import load_file
from transformers import EarlyStoppingCallback, TrainerState
from transformers.utils import logging

from secondlook.encode.encoder import Encoder
from secondlook.errors import SecondlookError
from secondlook.evaluate.measures import parse_measure
from secondlook.model.dropout import set_dropout
from secondlook.model.first_token import first_token_only
from secondlook.model.warm import Warm
from secondlook.score.torch_backend import device_of
from secondlook.train import processes
from secondlook.train.arguments import training_arguments
from secondlook.train.batches import DrawnGroups, EncodeGroups, Order
from secondlook.train.deadline import StopsAt
from secondlook.train.draw import Draw, Usable, usable
from secondlook.train.gain import Gain, Verdict
from secondlook.train.groups import Groups
from secondlook.train.log_odds import into_log_odds
from secondlook.train.phase import Outcome
from secondlook.train.ranker import precision_of, ranker_of, types_of
from secondlook.train.score_scale import kept_scale
from secondlook.train.states import keep_validated, last_whole, read_validated, whole
from secondlook.train.trainer import GroupTrainer, Learning, gates_of
from secondlook.train.validation import Validated, Validation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn
    from transformers import TrainingArguments

    from secondlook.model.network import Model
    from secondlook.score.ranker import Ranker
    from secondlook.train.batches import EncodedGroup
    from secondlook.train.phase import Place, TrainData
    from secondlook.train.settings import AdaptPhase, RankingPhase

_LOGS = 100  # points of the loss curve
_VALIDATIONS = 10


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """What a phase will go through."""

    groups: Groups
    found: Usable
    draw: Draw
    steps: int


def lesson(settings: RankingPhase, data: TrainData, seed: int) -> TrainingJob:
    """Find what there is to learn from; reads no texts."""
    if not data.train:
        raise SecondlookError(
            f"the phase {settings.phase!r} has no training data; name group files in the recipe: "
            '[data] train = ["train.parquet"]'
        )
    draw = Draw(
        settings.positives,
        settings.negatives,
        seed=f"{seed}\0{settings.phase}",
        fill=not settings.needs_labels,
    )
    groups = Groups(data.chosen(settings.only, settings.phase))
    found = usable(groups, draw, teacher=settings.needs_teacher, labels=settings.needs_labels)
    per_epoch = ceil(len(found.rows) / (settings.batch * processes.count()))
    steps = settings.max_steps or ceil(settings.epochs * per_epoch)
    return TrainingJob(groups, found, draw, steps)


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
    measure = str(parse_measure(settings.measure))
    validate: Callable[[], Validated] | None = None
    if data.validate is not None:
        validation = Validation(Groups([data.validate]), measure, settings.validate_queries)
        validate = partial(
            _validated, validation, lambda: ranker_of(start, types, device, precision)
        )
    before = {name: weight.detach().clone() for name, weight in start.network.state_dict().items()}
    drawn, order = DrawnGroups(plan.groups, plan.found, plan.draw), Order(plan.found, plan.draw)
    with prepared(start, settings, device), verbosity_kept():
        # By the same code and attention as all later validations, or their noise passes for a gain.
        at_start = _validated_start(validate, place.folder) if validate else None
        if settings.learns_log_odds and isinstance(start.network, Warm):
            scorer = ranker_of(start, types, device, precision)
            into_log_odds(start.network, scorer, (drawn[row] for row in order))
        scale = 1.0
        if settings.fit_score_scale and not settings.learns_log_odds:
            scorer = ranker_of(start, types, device, precision)
            scale = kept_scale(settings, scorer, (drawn[row] for row in order), place.folder)
        encode = start.settings.encode
        trainer = GroupTrainer(
            start.network,
            Learning(
                settings, _loss(settings, scale), validate, measure, encode.windows, place.watch
            ),
            _arguments(settings, plan, place, device, precision, measure if validate else None),
            (drawn, order, EncodeGroups(Encoder(start.tokenizer, encode, types=types))),
        )
        if validate and settings.patience is not None:
            trainer.add_callback(EarlyStoppingCallback(settings.patience))
        if place.deadline is not None:
            trainer.add_callback(StopsAt(place.deadline, place.watch))
        state = _train(trainer, place, plan.steps)
        best = _best_weights(trainer, place, state, validate, settings.keep)
    run = _Run(plan, state, measure, before, at_start, best, settings.keep)
    return _outcome(start, data, place, run)


def validate_every(settings: RankingPhase, steps: int) -> int:
    """After how many steps the ranker is validated and the run saved; once at the least."""
    return min(settings.validate_every or max(1, steps // _VALIDATIONS), steps)


@contextmanager
def prepared(
    model: Model, settings: RankingPhase | AdaptPhase, device: torch.device
) -> Iterator[None]:
    """The network as it is trained: dropout, frozen parts, and the attention that trains fastest.

    On a CPU that is the plain one: the fused kernels were slower under bf16 (docs/decisions/0147).
    """
    network = model.network
    encoder: Any = network.encoder
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
    set_dropout(network, dropout)
    if device.type == "cpu":
        encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        encoder.set_attn_implementation(attention)
        for name, weight in network.named_parameters():
            weight.requires_grad_(trainable[name])
        network.eval()


def _loss(settings: RankingPhase, scale: float = 1.0) -> Callable[[Tensor, EncodedGroup], Tensor]:
    """The loss of one group under these settings, of its scores times `scale`."""

    def cost(scores: Tensor, group: EncodedGroup) -> Tensor:
        grades = torch.tensor(group.labels, device=scores.device)
        teacher = None
        if settings.needs_teacher:
            teacher = torch.tensor(group.teacher, dtype=scores.dtype, device=scores.device)
        return settings.cost(scale * scores, grades, teacher)

    return cost


def _arguments(
    settings: RankingPhase,
    plan: TrainingJob,
    place: Place,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    measure: str | None,
) -> TrainingArguments:
    every = validate_every(settings, plan.steps)
    return training_arguments(
        place,
        place.run,
        device,
        steps=plan.steps,
        warmup=settings.warmup,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        bf16=precision == "bf16",
        eval_strategy="steps" if measure else "no",
        eval_steps=every,
        save_steps=every,
        metric_for_best_model=measure,
        greater_is_better=True,
        restore_callback_states_from_checkpoint=True,
        logging_steps=max(1, plan.steps // _LOGS),
        logging_nan_inf_filter=False,
        # Sent around at every forward otherwise, and processes cut a step into different numbers
        # of forwards: one would wait for ever. No buffer of an encoder changes.
        ddp_broadcast_buffers=False,
    )


def _train(trainer: GroupTrainer, place: Place, steps: int) -> TrainerState:
    """Train to the end, from where a killed run was."""
    last, state = last_whole(place.run)
    place.watch.begin("training", steps, done=state.global_step if state else 0)
    if trainer.average and last and state:
        trainer.average.load(last, state.global_step)
    if state is None or not _ended(state, steps):
        with first_token_only(trainer.network):
            trainer.train(resume_from_checkpoint=str(last) if last else None)
        state = trainer.state
    return state


@dataclass(frozen=True, slots=True)
class _Best:
    """The best weights of a training, which are those of the network now."""

    validated: Validated | None
    choices: dict[str, float]
    """What the trained weights and their average came to, where both were validated."""
    averaged: bool = False


def _best_weights(
    trainer: GroupTrainer,
    place: Place,
    state: TrainerState,
    validate: Callable[[], Validated] | None,
    keep: Literal["best", "last"],
) -> _Best:
    """Put the best weights into the network: those validated best, or their average if better.

    The average is validated once, at the end: a second validation at every step would cost as much
    as all the others. Without validation the average is taken, as it was asked for; likewise where
    the last weights are kept, and then its figure is told and not theirs.
    """
    processes.wait()  # the first has saved the last state
    last = whole(place.run)[-1]
    # by its name: the folder may have been moved since
    best = last if keep == "last" else place.run / Path(state.best_model_checkpoint or last).name
    trainer.network.load_state_dict(load_file(best / "model.safetensors"))
    plain = read_validated(best) if validate else None
    if trainer.average is None:
        return _Best(plain, {})
    trainer.average.load(best, state.global_step)
    if validate is None or plain is None or keep == "last":
        trainer.average.into_network()
        return _Best(validate() if validate else None, {}, averaged=True)
    with trainer.average.in_place():
        average = validate()
    choices = {"of the trained weights": plain.mean, "of their average": average.mean}
    if average.mean <= plain.mean:
        return _Best(plain, choices)
    trainer.average.into_network()
    return _Best(average, choices, averaged=True)


def _ended(state: TrainerState, steps: int) -> bool:
    """Whether the saved state is that of a run that was over: all steps done, or stopped early."""
    states: Any = state.stateful_callbacks or {}
    control = states.get("TrainerControl", {})
    stopped = control.get("args", {}).get("should_training_stop", False)
    return bool(stopped) or state.global_step >= steps


@dataclass(frozen=True, slots=True)
class _Run:
    plan: TrainingJob
    state: TrainerState
    measure: str
    before: dict[str, Tensor]
    at_start: Validated | None
    best: _Best
    keep: Literal["best", "last"]


def _outcome(start: Model, data: TrainData, place: Place, run: _Run) -> Outcome:
    metrics = {
        "steps": float(run.state.global_step),
        "queries": float(len(run.plan.found.rows)),
    } | gates_of(start.network)
    # They were fitted to other scores; `run.py` gives the finished ranker a scale.
    void = {"calibration": None, "fusion": None}
    trained = start.settings.model_copy(update={"trained": True} | void)
    model = replace(start, settings=trained)
    if run.at_start is not None and run.best.validated is not None:
        verdict = Verdict(
            run.measure,
            run.at_start,
            run.best.validated,
            run.best.choices,
            run.best.averaged,
            # a head that was never trained is no start to go back to
            rejected=run.keep == "best"
            and start.settings.trained
            and not Gain.between(run.at_start, run.best.validated).accepted,
        )
        place.watch.say(verdict.message())
        metrics |= verdict.metrics()
        if verdict.rejected:
            start.network.load_state_dict(run.before)
            metrics |= gates_of(start.network)
            model = start
    processes.wait()  # all have read the best weights, which the first may remove now
    learned = {path.name: Groups([path]).fingerprint for path in run.plan.groups.paths}
    return Outcome(model, data, learned, metrics, _history(run), labels=run.plan.groups.labels)


def _history(run: _Run) -> tuple[dict[str, float], ...]:
    """Loss and measure over the steps."""
    shown = {"loss": "loss", f"eval_{run.measure}": run.measure}
    logged = [
        {"step": float(logged["step"]), shown[name]: float(logged[name])}
        for logged in run.state.log_history
        for name in shown
        if name in logged
    ]
    return ({"step": 0.0, run.measure: run.at_start.mean}, *logged) if run.at_start else (*logged,)


def _validated(validation: Validation, ranker: Callable[[], Ranker]) -> Validated:
    """The figures of a new ranker: one that scored before may keep states of other weights."""
    return validation.of(ranker())


def _validated_start(validate: Callable[[], Validated], folder: Path) -> Validated:
    """The start's figures; kept, so that a resume need not measure them again."""
    if (kept := read_validated(folder)) is not None:
        return kept
    keep_validated(made := validate(), folder)
    return made


def _say_unused(plan: TrainingJob, place: Place) -> None:
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
